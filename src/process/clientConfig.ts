import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isIPv6 } from 'node:net'
import { AppError } from '../errors.ts'
import { shownValue } from '../secrets/shownValue.ts'
import { type Config, isEmbeddedUrl } from './config.ts'
import { keySizeOf, MAX_PORT, parseKey, parseUrl } from './variables/values.ts'

/** The settings of a client on the machine of the service. */
export interface ClientConfig {
  readonly url: string
  /** Whether `SVC_URL` names the service. */
  readonly isUrlGiven: boolean
  readonly dataDir: string
  readonly isDataDirGiven: boolean
  /**
   * The data directory whose keys are for `url`: the one that the settings name, or that of a service at the default address
   * in the same directory. Null with `SVC_URL` alone, because stored keys are sent to no other address.
   */
  readonly keysDir: string | null
  readonly masterKey: Buffer | null
  /** Whether the event store or the blobs of the service are external. */
  readonly hasExternalEngines: boolean
  /** `SVC_KEY`, or its other name `SVC_API_KEY`. */
  readonly apiKey: string | null
  /** The variable that has the key. */
  readonly apiKeyName: 'SVC_KEY' | 'SVC_API_KEY'
  readonly operatorToken: string | null
  readonly profile: string | null
  /** The folder with the profiles of this user. */
  readonly profilesDir: string
}

/** Reads the environment of a client. The defaults reach a service that was started in the same directory. */
export const readClientConfig = (
  env: Readonly<Record<string, string | undefined>> = process.env,
): ClientConfig => {
  const url = serviceUrlOf(env)
  const isUrlGiven = Boolean(env['SVC_URL'])
  const isDataDirGiven = Boolean(env['SVC_DATA_DIR'])
  const dataDir = resolve(env['SVC_DATA_DIR'] || '.svc')
  return {
    url,
    isUrlGiven,
    dataDir,
    isDataDirGiven,
    keysDir: !isUrlGiven || isDataDirGiven || url === localUrlOf(env) ? dataDir : null,
    masterKey: masterKeyIn(env),
    hasExternalEngines: [env['SVC_EVENT_STORE'], env['SVC_BLOBS']].some((url) => url && !isEmbeddedUrl(url)),
    apiKey: env['SVC_KEY'] || env['SVC_API_KEY'] || null,
    apiKeyName: env['SVC_KEY'] ? 'SVC_KEY' : 'SVC_API_KEY',
    operatorToken: env['SVC_OPERATOR_TOKEN'] || null,
    profile: env['SVC_PROFILE'] || null,
    profilesDir: join(env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'svc'),
  }
}

/** Null without one. A wrong one is not ignored: another key would be used in its place. */
const masterKeyIn = (env: Readonly<Record<string, string | undefined>>): Buffer | null => {
  const given = env['SVC_MASTER_KEY']
  if (!given) return null
  const key = parseKey(given)
  if (key !== undefined) return key
  throw new AppError(
    'bad_request',
    `SVC_MASTER_KEY: expected 32 bytes as base64 (openssl rand -base64 32); got ${keySizeOf(given)}`,
  )
}

/** Variables that would lead the service of `svc dev` to other data, or open more than its port. */
const NOT_FOR_DEV =
  /^(?:SVC_(?:EVENT_STORE|READ_MODELS|BLOBS|REDIS|ROLES|MASTER_KEY\w*|ACCEPT_LOSS|API_KEY|KEY|URL|OPERATOR_\w+|PUBLIC_URL|DOMAINS_ZONE|TLS_PORT|ACME_\w+)|NODE_CHANNEL_\w+)$/

/** The environment of the service that `svc dev` starts: embedded, with its own data, and open to pages of this machine. */
export const devServiceEnv = (
  { dataDir, port }: Pick<Config, 'dataDir' | 'port'>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string | undefined>> => ({
  SVC_CORS_ORIGINS: 'loopback',
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !NOT_FOR_DEV.test(name))),
  SVC_DATA_DIR: dataDir,
  SVC_LOG_FORMAT: 'text',
  PORT: String(port),
})

/** Where the service of `svc dev` listens, unless an option names another port. */
export const readDevAddress = (
  env: Readonly<Record<string, string | undefined>> = process.env,
): { readonly host: string; readonly port: number } => {
  const text = env['PORT'] || '8080'
  if (/^\d+$/.test(text) && Number(text) <= MAX_PORT)
    return { host: env['HOST'] || '127.0.0.1', port: Number(text) }
  throw new AppError(
    'bad_request',
    `PORT: expected a whole number from 0 to ${MAX_PORT}, such as 8080; got ${shownValue(text)}`,
  )
}

const serviceUrlOf = (env: Readonly<Record<string, string | undefined>>): string => {
  const given = env['SVC_URL']
  const url = given ? parseServiceUrl(given) : localUrlOf(env)
  if (url !== undefined) return url
  throw new AppError(
    'bad_request',
    given
      ? 'SVC_URL: expected an http or https URL without a user name and a query, such as https://svc.example.com; ' +
          `got ${shownValue(given)}`
      : `HOST, PORT: expected an address and a port, got ${shownValue(localAddress(env))}; or set SVC_URL`,
  )
}

/** Where `svc serve` listens in the same directory; undefined if that is no address. */
const localUrlOf = (env: Readonly<Record<string, string | undefined>>): string | undefined =>
  parseUrl(`http://${localAddress(env)}`)

const localAddress = (env: Readonly<Record<string, string | undefined>>): string => {
  const host = env['HOST'] || '127.0.0.1'
  return `${isIPv6(host) ? `[${host}]` : host}:${env['PORT'] || 8080}`
}

/** The URL of a service; undefined if the text is none. */
export const parseServiceUrl = (text: string): string | undefined => {
  const url = parseUrl(text)
  return url !== undefined && isBase(new URL(url)) ? url : undefined
}

/** Whether a path can follow the URL, and requests can be sent to it. */
const isBase = ({ username, password, search, hash }: URL): boolean =>
  username + password + search + hash === ''
