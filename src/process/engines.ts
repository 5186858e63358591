import { hkdfSync, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openDns } from '../adapters/system/dns.ts'
import { openHints } from '../adapters/embedded/hints.ts'
import type { RestoredLog } from '../adapters/embedded/eventStore/restoredLog.ts'
import { openRateLimiter } from '../adapters/embedded/rateLimiter.ts'
import { AppError, unreadable } from '../errors.ts'
import { type Config, isEmbeddedUrl } from './config.ts'
import type { Logger } from '../logger.ts'
import type { Patiently } from '../loops/patience.ts'
import type { Certificates } from '../ports/certificates.ts'
import type { Dns } from '../ports/dns.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Hints } from '../ports/hints.ts'
import type { Exposition, Metric } from '../ports/metrics.ts'
import type { Probed } from '../ports/probe.ts'
import type { RateLimiter } from '../ports/rateLimiter.ts'
import type { ReadModels } from '../ports/readModels.ts'
import type { StreamGaps } from '../ports/storedLog.ts'
import type { Tracer } from '../ports/tracer.ts'

/** Exported for dataDir.ts, because only this file imports adapters. */

export interface Engines {
  readonly store: EventStore
  readonly readModels: ReadModels
  readonly blobs: Blobs
  readonly hints: Hints
  readonly dns: Dns
  /** Null where a proxy in front of the service does TLS. */
  readonly certificates: Certificates | null
  readonly limiter: RateLimiter
}

interface Opening<Keys> {
  readonly logger: Logger
  readonly patiently: Patiently
  /** Receives the function that closes an opened engine. */
  readonly opened: (close: () => Promise<void>) => void
  /** Checks that these engines belong together, and opens the keys of the installation that they store. */
  readonly openKeys: (engines: Pick<Engines, 'store' | 'readModels' | 'blobs'>) => Promise<Keys>
  /** Receives the reason why an opened engine refuses writes; null when all accept them again. */
  readonly refusing: (reason: string | null) => void
  /** Receives the reason when a file of an opened engine was found damaged. Only the next start repairs it. */
  readonly damaged: (reason: string) => void
}

/**
 * Opens the configured engines and loads only their adapters. Waits for an engine that is down. Rejects with
 * `bad_request` when waiting does not help, for example for a wrong password or a missing bucket.
 */
export const openEngines = async <Keys extends { readonly rootKey: Uint8Array }>(
  config: Config,
  opening: Opening<Keys>,
): Promise<{ readonly engines: Engines; readonly keys: Keys }> => {
  const { patiently } = opening
  const opened = <T extends { close(): Promise<void> }>(open: () => Promise<T>): Promise<T> =>
    patiently(async () => {
      const engine = await open()
      opening.opened(() => engine.close())
      return engine
    })
  const { logger } = opening
  const refusing = refusals(opening)
  const damaged = (reason: string) => {
    logger.error(reason)
    opening.damaged(reason)
  }
  const store = await opened(() =>
    openStore(config, { logger, damaged, refusing: refusing('The event store') }),
  )
  const readModels = await opened(() =>
    openReadModels(config, { logger, damaged, refusing: refusing('The database of the read models') }),
  )
  const blobs = await opened(() => openBlobs(config))
  const keys = await patiently(() => opening.openKeys({ store, readModels, blobs }))
  const installation = installationOf(keys.rootKey)
  const engines = {
    store,
    readModels,
    blobs,
    hints: await opened(() => openHintsOf(config, opening.logger, installation)),
    dns: openDns(config.dnsResolvers),
    certificates: await openCertificates(config, keys.rootKey, opening.logger),
    limiter: await opened(() => openLimiter(config, opening.logger)),
  }
  return { engines, keys }
}

const openCertificates = async (
  { acme }: Config,
  rootKey: Uint8Array,
  logger: Logger,
): Promise<Certificates | null> => {
  if (acme === null) return null
  const { caFile, ...authority } = acme
  const ca = caFile === null ? null : await readCa(caFile)
  return (await import('../adapters/acme/certificates.ts')).openAcme({ ...authority, ca, rootKey, logger })
}

const readCa = async (file: string): Promise<string> => {
  const refused = (reason: string) => new AppError('bad_request', `SVC_ACME_CA: ${reason}`)
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw refused(unreadable(file, error))
  })
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  if (certificates.length > 0 && certificates.every(isCertificate)) return text
  throw refused(`expected a file with the certificates of the authority as PEM, got ${file}`)
}

const isCertificate = (pem: string): boolean => {
  try {
    return Boolean(new X509Certificate(pem))
  } catch {
    return false
  }
}

/** Logs the refusals of each engine by its name, and reports them together. */
const refusals = ({ logger, refusing }: Pick<Opening<unknown>, 'logger' | 'refusing'>) => {
  const reasons = new Map<string, string>()
  return (engine: string) =>
    (reason: string | null): void => {
      if (reason === null) {
        logger.info(`${engine} accepts writes again`)
        reasons.delete(engine)
      } else {
        logger.error(`${engine} refuses writes`, { reason })
        reasons.set(engine, reason)
      }
      refusing(reasons.values().next().value ?? null)
    }
}

type Reporting = Partial<Pick<Opening<unknown>, 'logger' | 'refusing' | 'damaged'>>

/** Opens the event store alone, for tools. */
export const openStore = async (
  { eventStore, dataDir }: Config,
  { logger, refusing, damaged }: Reporting = {},
): Promise<EventStore> =>
  isEmbeddedUrl(eventStore)
    ? (await import('../adapters/embedded/eventStore/index.ts')).openEventStore({
        dir: dataDir,
        onDiscarded: (discarded) =>
          logger?.warn('The index of the log was unusable and is built again', { ...discarded }),
        ...(refusing && { onRefusing: refusing }),
        ...(damaged && { onDamaged: damaged }),
      })
    : (await import('../adapters/eventstoredb/index.ts')).openEventStoreDb(eventStore)

/** Creates an embedded log from a backup. */
export const createRestoredLog = async (file: string): Promise<RestoredLog> =>
  (await import('../adapters/embedded/eventStore/restoredLog.ts')).createRestoredLog(file)

/** Opens what finds and removes the facts before gaps in the streams of a backup. */
export const openStreamGaps = async (): Promise<StreamGaps> =>
  (await import('../adapters/embedded/eventStore/streamGaps.ts')).openStreamGaps()

/** Loads what reads the facts in a row of a backup. */
export const openRowReader = async () => {
  const { parseRow } = await import('../adapters/embedded/eventStore/logRows.ts')
  return (first: number, text: string) => parseRow(first, text).events
}

/** Opens the read models alone, for tools. */
export const openReadModels = async (
  { readModels, dataDir }: Config,
  { logger, refusing, damaged }: Reporting = {},
): Promise<ReadModels> =>
  isEmbeddedUrl(readModels)
    ? (await import('../adapters/embedded/readModels/index.ts')).openReadModels({
        dir: dataDir,
        onDiscarded: (discarded) =>
          logger?.warn('The read models were unusable and are rebuilt from the log', { ...discarded }),
        ...(refusing && { onRefusing: refusing }),
        ...(damaged && { onDamaged: damaged }),
      })
    : (await import('../adapters/mongodb/index.ts')).openMongoReadModels({ url: readModels })

/** Opens the embedded log for a thread, up to its present end. */
export const openPresentLog = async (dataDir: string, onUnknown: (reason: string) => void) =>
  (await import('../adapters/embedded/eventStore/presentLog.ts')).openPresentLog(dataDir, onUnknown)

/** Opens the file of one embedded read model for a thread that fills it. */
export const openSideFile = async (dir: string, { leaves }: { readonly leaves: number | null }) =>
  (await import('../adapters/embedded/readModels/index.ts')).openSideFile(dir, { leaves })

/** Opens the connection to the collector of traces; null without one: its library takes time and memory. */
export const openTracer = async (
  { traces }: Config,
  { logger, version }: { readonly logger: Logger; readonly version: string },
): Promise<(Tracer & { close(): Promise<void> }) | null> =>
  traces && (await import('../adapters/otlp/tracer.ts')).openOtlpTracer({ ...traces, version }, logger)

/** Loads the client library of the monitoring system, which takes time and memory. */
export const openExposition = async (metrics: readonly Metric[]): Promise<Exposition> =>
  (await import('../adapters/prometheus/exposition.ts')).openExposition(metrics)

/** Opens the blobs alone, for tools. `onlyRead`: a service may be using them. */
export const openBlobs = async (
  { blobs, dataDir }: Pick<Config, 'blobs' | 'dataDir'>,
  { onlyRead = false }: { readonly onlyRead?: boolean } = {},
): Promise<Blobs> =>
  isEmbeddedUrl(blobs)
    ? (await import('../adapters/embedded/blobs.ts')).openBlobs({ dir: join(dataDir, 'blobs'), onlyRead })
    : (await import('../adapters/s3/index.ts')).openS3Blobs(blobs)

/** An engine by the setting that selects it. */
export const engineSettings = {
  SVC_EVENT_STORE: 'event store',
  SVC_READ_MODELS: 'read models',
  SVC_BLOBS: 'blobs',
  SVC_REDIS: 'Redis',
} as const
export type EngineSetting = keyof typeof engineSettings

/** Asks an external engine through a connection of its own, which is closed again. Rejects as its opening does. */
export const probeEngine = async (setting: EngineSetting, url: string): Promise<Probed> => {
  switch (setting) {
    case 'SVC_EVENT_STORE':
      return (await import('../adapters/eventstoredb/probe.ts')).probeEventStoreDb(url)
    case 'SVC_READ_MODELS':
      return (await import('../adapters/mongodb/probe.ts')).probeMongo(url)
    case 'SVC_BLOBS':
      return (await import('../adapters/s3/probe.ts')).probeS3(url)
    case 'SVC_REDIS':
      return (await import('../adapters/redis/probe.ts')).probeRedis(url)
    default:
      return setting satisfies never
  }
}

/** Hints contain the id of the installation: another one may share this Redis by mistake, with other positions. */
const openHintsOf = async ({ redis }: Config, logger: Logger, installation: string): Promise<Hints> =>
  redis === null
    ? openHints()
    : (await import('../adapters/redis/index.ts')).openRedisHints(redis, logger, installation)

/** The id of the installation: equal on all its nodes, different for every other installation. */
const installationOf = (rootKey: Uint8Array): string =>
  `${Buffer.from(hkdfSync('sha256', rootKey, '', 'svc hints', 6)).toString('hex')}:`

const openLimiter = async ({ redis }: Config, logger: Logger): Promise<RateLimiter> =>
  redis === null
    ? openRateLimiter()
    : (await import('../adapters/redis/index.ts')).openRedisRateLimiter(redis, logger)
