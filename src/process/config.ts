import { resolve } from 'node:path'
import { NOTHING_ALLOWED, type OperatorAllow, parseOperatorAllow } from '../egress/operatorAllow.ts'
import { type CorsOrigins, parseCorsOrigins } from '../ports/corsOrigins.ts'
import { NO_PROXIES, parseTrustedProxies, type TrustedProxies } from '../ports/trustedProxies.ts'
import { AppError } from '../errors.ts'
import { FORMATS, type Format, type Level, LEVELS } from '../logger.ts'
import { type Tier, tiers } from '../sandbox/processSandbox.ts'
import { isStrong, parseApiToken, strongSecret } from '../access/tokens.ts'
import { checksOf } from './variables/checks.ts'
import {
  MAX_PORT,
  parseHost,
  parseKey,
  parseServers,
  parseUrl,
  parseZone,
  zoneOf,
} from './variables/values.ts'
import { shownValue } from '../secrets/shownValue.ts'
import { readTraces, type Traces } from './variables/traces.ts'
import { unknownVariables } from './variables/unknown.ts'

export interface Config {
  readonly port: number
  readonly host: string
  readonly dataDir: string
  /** `embedded:` or the URL of the engine, which may contain secrets. */
  readonly eventStore: string
  readonly readModels: string
  readonly blobs: string
  readonly redis: string | null
  readonly roles: ReadonlySet<Role>
  /** 32 bytes; null: generated in the data directory on the first start. */
  readonly masterKey: Buffer | null
  /** The key that `masterKey` replaces, during its rotation. */
  readonly previousMasterKey: Buffer | null
  /** Names a loss of events that the operator accepts; null: none. */
  readonly acceptLoss: string | null
  readonly apiKey: string | null
  readonly operatorToken: string | null
  /** The host name of the operator's API; null: every host. */
  readonly operatorHost: string | null
  /** The URL at which clients reach the service, used in webhook URLs; null: the address it listens on. */
  readonly publicUrl: string | null
  /** The origins whose pages may use the API from a browser; null: none. */
  readonly corsOrigins: CorsOrigins | null
  /** The proxies whose `X-Forwarded-*` headers are believed. */
  readonly trustedProxies: TrustedProxies
  /** The DNS zone with the names that custom domains point to. */
  readonly domainsZone: string
  /** Resolvers for the hosts of functions, `address` or `address:port`; empty: the system's. */
  readonly dnsServers: readonly string[]
  /** Resolvers for the records of custom domains, which must agree; by default those of functions. */
  readonly dnsResolvers: readonly string[]
  /** Targets that functions may reach although they are not public. */
  readonly egressAllow: OperatorAllow
  /** Minimum time between two checks of the records of a custom domain. */
  readonly domainCheckMs: number
  /** Time between two checks of the records of an active custom domain. */
  readonly domainRecheckMs: number
  /** The authority for the certificates of custom domains; null: a proxy in front of the service does TLS. */
  readonly acme: AcmeConfig | null
  /** The port of the name server for the challenges of the authority; null: this node has none. */
  readonly acmeDnsPort: number | null
  /** The port for custom domains over TLS; null: this node has none. */
  readonly tlsPort: number | null
  /** The tier in which children must run; auto: the strongest that works. */
  readonly sandbox: Tier | 'auto'
  /** Whether the service may run as root although its children cannot get users of their own. */
  readonly allowRoot: boolean
  readonly sseTimeoutMs: number
  readonly runTimeoutMs: number
  readonly webhookTimeoutMs: number
  /** Megabytes of unpacked builds on the disk of this node. */
  readonly buildCacheMb: number
  /** The depth of runs from which on functions can start no further runs. */
  readonly maxRunDepth: number
  /** The least important lines that the service writes. */
  readonly logLevel: Level
  /** The form of the lines; null: text on a terminal, otherwise JSON. */
  readonly logFormat: Format | null
  /** The collector that receives traces; null: none. */
  readonly traces: Traces | null
  /** Variables that begin with `SVC_` and have no effect. */
  readonly unknown: readonly string[]
}

interface AcmeConfig {
  readonly directoryUrl: string
  /** Receives warnings of the authority. */
  readonly email: string | null
  /** A file with the roots of the authority's own TLS, PEM; null: the usual ones. */
  readonly caFile: string | null
}

const EMBEDDED = 'embedded:'

/** Least characters of the secret of an API key, as in every token, and of the token that may do everything. */
const API_KEY_LENGTH = 16
const OPERATOR_TOKEN_LENGTH = 32

export { MAX_PORT }

type EngineUrls = Pick<Config, 'eventStore' | 'readModels' | 'blobs'>

export const isEmbeddedUrl = (url: string): boolean => url === EMBEDDED

/** Whether all engines are embedded, so that this process needs only its data directory. */
const isEmbedded = ({ eventStore, readModels, blobs }: EngineUrls): boolean =>
  [eventStore, readModels, blobs].every(isEmbeddedUrl)

/** Whether this process works alone: an engine is embedded, so other nodes could not see its data. */
export const isSolo = ({ eventStore, readModels, blobs }: EngineUrls): boolean =>
  [eventStore, readModels, blobs].some(isEmbeddedUrl)

export const allRoles = ['api', 'worker', 'projector', 'saga'] as const
export type Role = (typeof allRoles)[number]

/** Reads the environment (DESIGN.md, Start and configure) and reports every problem at once. */
export const readConfig = (env: Readonly<Record<string, string | undefined>> = process.env): Config => {
  const checks = checksOf(env)
  const { problems, known, check, checkSecret, checkKey, integer, flag } = checks
  const engine = (name: string, scheme: RegExp, example: string): string =>
    check(
      name,
      EMBEDDED,
      (text) => (text === EMBEDDED || scheme.test(text) ? text : undefined),
      `\`${EMBEDDED}\` or ${example}`,
    )

  const addresses = (name: string, fallback: readonly string[]) =>
    check<readonly string[]>(
      name,
      fallback,
      parseServers,
      'IP addresses, with or without a port, separated by commas, such as 192.0.2.1,192.0.2.2:5353',
    )
  const port = (name: string, example: number): number | null => {
    const value = integer(name, -1, 0, MAX_PORT, example)
    return value === -1 ? null : value
  }

  const dnsServers = addresses('SVC_DNS_SERVERS', [])
  const acmeUrl = check<string | null>(
    'SVC_ACME_URL',
    null,
    (text) => (/^https:\/\/./.test(text) && URL.canParse(text) ? text : undefined),
    'the https URL of an ACME directory, such as https://acme-v02.api.letsencrypt.org/directory',
  )
  const acme = {
    email: check<string | null>(
      'SVC_ACME_EMAIL',
      null,
      (text) => (/^[^@\s,:]+@[^@\s,:]+$/.test(text) ? text : undefined),
      'one email address, such as ops@example.com',
    ),
    caFile: check<string | null>('SVC_ACME_CA', null, (text) => text, 'a file'),
  }
  const acceptsTerms = flag('SVC_ACME_ACCEPT_TERMS')
  const publicUrl = check<string | null>(
    'SVC_PUBLIC_URL',
    null,
    parseUrl,
    'an http or https URL, such as https://svc.example.com',
  )
  const config: Omit<Config, 'unknown'> = {
    port: integer('PORT', 8080, 0, MAX_PORT),
    host: check(
      'HOST',
      '127.0.0.1',
      parseHost,
      'a host name or address without a scheme and a port, such as 127.0.0.1 or ::',
    ),
    dataDir: resolve(check('SVC_DATA_DIR', '.svc', (text) => text, 'a path')),
    eventStore: engine('SVC_EVENT_STORE', /^esdb(\+discover)?:\/\/./, '`esdb://host:2113?tls=false`'),
    readModels: engine('SVC_READ_MODELS', /^mongodb(\+srv)?:\/\/./, '`mongodb://host:27017/database`'),
    blobs: engine('SVC_BLOBS', /^s3:\/\/./, '`s3://<key>:<secret>@host:port/bucket`'),
    redis: check<string | null>(
      'SVC_REDIS',
      null,
      (text) => (/^rediss?:\/\/./.test(text) ? text : undefined),
      '`redis://host:6379`',
    ),
    roles: check<ReadonlySet<Role>>(
      'SVC_ROLES',
      new Set(allRoles),
      parseRoles,
      `some of ${allRoles.join(',')}`,
    ),
    masterKey: checkKey<Buffer | null>(
      'SVC_MASTER_KEY',
      null,
      parseKey,
      '32 bytes as base64 (openssl rand -base64 32)',
    ),
    previousMasterKey: checkKey<Buffer | null>(
      'SVC_MASTER_KEY_PREVIOUS',
      null,
      parseKey,
      '32 bytes as base64: the value of SVC_MASTER_KEY before its rotation',
    ),
    acceptLoss: check<string | null>(
      'SVC_ACCEPT_LOSS',
      null,
      (text) => (/^[0-9a-f]{12}$/.test(text) ? text : undefined),
      'the value of 12 digits and letters that the refused start has printed',
    ),
    apiKey: checkSecret<string | null>(
      'SVC_API_KEY',
      null,
      (text) => (isStrong(parseApiToken(text)?.secret ?? '', API_KEY_LENGTH) ? text : undefined),
      `svc_<uuid>_<secret>, the secret of letters and digits, ${strongSecret(API_KEY_LENGTH)} (openssl rand -hex 32)`,
    ),
    operatorToken: checkSecret<string | null>(
      'SVC_OPERATOR_TOKEN',
      null,
      (text) => (isStrong(text, OPERATOR_TOKEN_LENGTH) && /^[\x21-\x7e]+$/.test(text) ? text : undefined),
      `${strongSecret(OPERATOR_TOKEN_LENGTH)}, without spaces (openssl rand -hex 32)`,
    ),
    operatorHost: check<string | null>(
      'SVC_OPERATOR_HOST',
      null,
      (text) => (/^[A-Za-z0-9._-]+$/.test(text) ? text.toLowerCase() : undefined),
      'a host name or address without a port, as in the Host header, such as ops.example.com',
    ),
    publicUrl,
    trustedProxies: check<TrustedProxies>(
      'SVC_TRUSTED_PROXIES',
      NO_PROXIES,
      parseTrustedProxies,
      'the number of proxies in front of the service (0 to 10), or their addresses and networks: 127.0.0.1,10.0.0.0/8',
    ),
    corsOrigins: check<CorsOrigins | null>(
      'SVC_CORS_ORIGINS',
      null,
      parseCorsOrigins,
      'origins of web pages separated by commas, such as https://app.example or http://localhost:*, or loopback',
    ),
    domainsZone: check(
      'SVC_DOMAINS_ZONE',
      zoneOf(publicUrl),
      parseZone,
      'a DNS name of two labels or more, such as domains.example.com',
    ),
    dnsServers,
    dnsResolvers: addresses('SVC_DNS_RESOLVERS', dnsServers),
    egressAllow: check<OperatorAllow>(
      'SVC_EGRESS_ALLOW',
      NOTHING_ALLOWED,
      parseOperatorAllow,
      'networks, hosts or host:port, separated by commas, such as 10.1.0.0/16,db.internal:5432',
    ),
    domainCheckMs: integer('SVC_DOMAIN_CHECK_MS', 10_000, 10, 3_600_000),
    domainRecheckMs: integer('SVC_DOMAIN_RECHECK_MS', 86_400_000, 100, 604_800_000),
    acme: acmeUrl === null ? null : { directoryUrl: acmeUrl, ...acme },
    acmeDnsPort: port('SVC_ACME_DNS_PORT', 5353),
    tlsPort: port('SVC_TLS_PORT', 8443),
    sandbox: check<Tier | 'auto'>(
      'SVC_SANDBOX',
      'auto',
      (text) => ['auto' as const, ...tiers].find((tier) => tier === text),
      `auto, ${tiers.join(' or ')}`,
    ),
    allowRoot: flag('SVC_ALLOW_ROOT'),
    sseTimeoutMs: integer('SVC_SSE_TIMEOUT_MS', 300_000, 100, 86_400_000),
    runTimeoutMs: integer('SVC_RUN_TIMEOUT_MS', 300_000, 1, 86_400_000),
    webhookTimeoutMs: integer('SVC_WEBHOOK_TIMEOUT_MS', 30_000, 1, 900_000),
    buildCacheMb: integer('SVC_BUILD_CACHE_MB', 2048, 64, 1_048_576),
    maxRunDepth: integer('SVC_MAX_RUN_DEPTH', 100, 0, 1_000_000),
    logLevel: check<Level>(
      'SVC_LOG_LEVEL',
      'info',
      (text) => LEVELS.find((level) => level === text),
      'debug, info, warn or error',
    ),
    traces: readTraces(checks),
    logFormat: check<Format | null>(
      'SVC_LOG_FORMAT',
      null,
      (text) => FORMATS.find((format) => format === text),
      FORMATS.join(' or '),
    ),
  }
  if (isSolo(config) && config.roles.size < allRoles.length) {
    problems.push(
      'SVC_ROLES: nodes share their work through SVC_EVENT_STORE, SVC_READ_MODELS and SVC_BLOBS; ' +
        'while one of them is embedded, the process must have every role',
    )
  }
  if (
    !isEmbedded(config) &&
    config.masterKey === null &&
    !problems.some((text) => text.startsWith('SVC_MASTER_KEY'))
  )
    problems.push('SVC_MASTER_KEY: required when an engine is not embedded (openssl rand -base64 32)')
  if (acmeUrl !== null && !acceptsTerms)
    problems.push(
      `SVC_ACME_ACCEPT_TERMS: expected 1, after you have read the terms of service that ${shownValue(acmeUrl)} names`,
    )
  if (acmeUrl === null && (config.tlsPort !== null || config.acmeDnsPort !== null))
    problems.push(
      'SVC_ACME_URL: required for SVC_TLS_PORT and SVC_ACME_DNS_PORT, because it names the authority',
    )
  if (config.previousMasterKey !== null && config.masterKey === null)
    problems.push('SVC_MASTER_KEY_PREVIOUS: expected SVC_MASTER_KEY with the new master key beside it')
  const unknown = unknownVariables(env, known)
  for (const { name, likely } of unknown)
    if (likely !== undefined) problems.push(`${name}: unknown, did you mean ${likely}?`)
  if (problems.length > 0)
    throw new AppError('bad_request', `Configuration:\n  ${problems.join('\n  ')}`, { data: { problems } })
  return { ...config, unknown: unknown.map(({ name }) => name) }
}

const parseRoles = (text: string): ReadonlySet<Role> | undefined => {
  const roles = text.split(',').map((role) => role.trim())
  const known = new Set(roles.filter((role): role is Role => (allRoles as readonly string[]).includes(role)))
  return known.size > 0 && roles.length === known.size ? known : undefined
}
