import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { type ClientConfig, readClientConfig } from '../process/clientConfig.ts'
import { apiKeyIn } from '../process/secretsFile.ts'
import { readInstance } from './instance.ts'
import { readProfile } from './profiles.ts'
import { WrongUsage } from './wrongUsage.ts'

/** A service and a credential for it. */
export interface Connection {
  readonly url: string
  readonly key: string
  /** The credential in an error, such as `API key`. */
  readonly what: string
  /** What to do if the service refuses the credential. */
  readonly fix: string
  /** The project of the folder; null if nothing names one. */
  readonly project: string | null
}

/**
 * The environment that a command reaches, by the first of these: `SVC_URL`; a named profile; the `svc dev` of the folder; the
 * default profile; a service in the same directory. `SVC_KEY` replaces the key of all of them. A stored key is sent to
 * the URL beside it only. The keys of a data directory are sent to its own service only.
 */
export const connectionHere = (profile?: string): Connection => {
  const config = readClientConfig()
  const found = namedConnection(config, profile) ?? localConnection(config)
  return config.apiKey === null
    ? found
    : {
        ...found,
        key: checkedToken(config.apiKeyName, config.apiKey),
        what: `API key in ${config.apiKeyName}`,
        fix: 'set a key of this service',
      }
}

/** The URL of the same service. It needs no key. */
export const urlHere = (profile?: string): string => {
  const config = readClientConfig()
  return (namedConnection(config, profile) ?? config).url
}

/** The environment that a profile or a folder names; null if only the settings are left. */
const namedConnection = (config: ClientConfig, profile?: string): Connection | null => {
  if (!config.isUrlGiven) return storedConnection(config, profile)
  if (profile === undefined) return null
  throw new WrongUsage('--profile: expected no SVC_URL beside it, which names another service')
}

const storedConnection = (config: ClientConfig, profile?: string): Connection | null => {
  const name = profile ?? config.profile
  if (name !== null) return profileConnection(config, name)
  const instance = readInstance('.')
  if (instance === null) return profileConnection(config, null)
  const { url, key, project, file } = instance
  return { url, key, what: `API key in ${onOneLine(file)}`, fix: 'restart svc dev', project }
}

const profileConnection = ({ profilesDir }: ClientConfig, name: string | null): Connection | null => {
  const profile = readProfile(profilesDir, name)
  if (profile === null) return null
  const { url, key } = profile
  return {
    url,
    key,
    what: `API key of the profile ${onOneLine(profile.name)}`,
    fix: `repeat svc login ${onOneLine(url)} --profile ${onOneLine(profile.name)}`,
    project: null,
  }
}

const localConnection = (config: ClientConfig): Connection => {
  const { url, dataDir, keysDir, masterKey, apiKey } = config
  const key = apiKey ?? apiKeyIn(keysDir, masterKey)
  if (key === null && !config.isUrlGiven)
    throw new AppError(
      'unauthorized',
      `no API key in ${dataDir}; start svc dev in this folder, store a service with svc login, or set SVC_URL and SVC_KEY`,
    )
  return {
    url,
    key: tokenOf('SVC_KEY', 'API key', config, key),
    what: 'API key',
    fix: 'set SVC_KEY',
    project: null,
  }
}

/** The settings of the operator: where nothing else is given, those of the `svc dev` of the folder. */
export const localConfig = (): ClientConfig => {
  const config = readClientConfig()
  const instance = config.isUrlGiven ? null : readInstance('.')
  if (instance === null) return config
  const { url, dataDir } = instance
  return { ...config, url, ...(!config.isDataDirGiven && { keysDir: dataDir }) }
}

/** The token, which is required. */
export const tokenOf = (
  variable: string,
  what: string,
  { url, keysDir }: ClientConfig,
  token: string | null,
): string => {
  if (token === null)
    throw new AppError(
      'unauthorized',
      `no ${what} ${keysDir ? `in ${keysDir}` : `for ${onOneLine(url)}`}; ` +
        `set ${variable}, or set SVC_DATA_DIR to the directory of the service`,
    )
  return checkedToken(variable, token)
}

const checkedToken = (variable: string, token: string): string => {
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new AppError('bad_request', `${variable}: expected letters, digits and signs without spaces`)
}
