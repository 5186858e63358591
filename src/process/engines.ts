import { hkdfSync } from 'node:crypto'
import { join } from 'node:path'
import { openDns } from '../adapters/system/dns.ts'
import { noCertificates } from '../adapters/system/noCertificates.ts'
import { openHints } from '../adapters/embedded/hints.ts'
import { openRateLimiter } from '../adapters/embedded/rateLimiter.ts'
import { type Config, isEmbeddedUrl } from './config.ts'
import { AppError, isAppError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from '../loops/backoff.ts'
import type { Certificates } from '../ports/certificates.ts'
import type { Dns } from '../ports/dns.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Hints } from '../ports/hints.ts'
import type { RateLimiter } from '../ports/rateLimiter.ts'
import type { ReadModels } from '../ports/readModels.ts'

/** Locks a file for this process: dataDir.ts takes it from here, the one file that imports adapters. */
export { lockFile } from '../adapters/embedded/eventStore/lockFile.ts'

export interface Engines {
  readonly store: EventStore
  readonly readModels: ReadModels
  readonly blobs: Blobs
  readonly hints: Hints
  readonly dns: Dns
  readonly certificates: Certificates
  readonly limiter: RateLimiter
}

interface Opening {
  readonly logger: Logger
  /** Aborts when nobody wants the engines any more. */
  readonly signal: AbortSignal
  /** Told what is opened, so that it is closed again. */
  readonly opened: (close: () => Promise<void>) => void
  /** Told what is waited for; null when everything is there. */
  readonly waiting: (reason: string | null) => void
}

const PAUSES = { firstMs: 100, longestMs: 2000 }

/**
 * Opens what the configuration names; adapters are loaded only when they are used. An engine that is down is waited
 * for; what cannot work (`bad_request`: a wrong password, a bucket that is missing) is thrown.
 */
export const openEngines = async (config: Config, opening: Opening): Promise<Engines> => {
  const patiently = async <T extends { close(): Promise<void> }>(open: () => Promise<T>): Promise<T> => {
    let told = ''
    const backoff = new Backoff(PAUSES)
    for (;;) {
      try {
        const engine = await open()
        opening.opened(() => engine.close())
        opening.waiting(null)
        return engine
      } catch (error) {
        if (!isAppError(error, 'unavailable')) throw error
        opening.waiting(error.message)
        if (error.message !== told) opening.logger.warn(`${error.message}; trying again until it answers`)
        told = error.message
      }
      await backoff.pause({ signal: opening.signal })
      if (opening.signal.aborted)
        throw new AppError('unavailable', 'The start was stopped while it waited for an engine')
    }
  }
  return {
    store: await patiently(() => openStore(config)),
    readModels: await patiently(() => openReadModels(config, opening.logger)),
    blobs: await patiently(() => openBlobs(config)),
    hints: await patiently(() => openHintsOf(config, opening.logger)),
    dns: openDns(config.dnsServers),
    certificates: noCertificates,
    limiter: await patiently(() => openLimiter(config, opening.logger)),
  }
}

/** The event store alone, as tools want it. */
export const openStore = async ({ eventStore, dataDir }: Config): Promise<EventStore> =>
  isEmbeddedUrl(eventStore)
    ? (await import('../adapters/embedded/eventStore/index.ts')).openEventStore({ dir: dataDir })
    : (await import('../adapters/eventstoredb/index.ts')).openEventStoreDb(eventStore)

const openReadModels = async ({ readModels, dataDir }: Config, logger: Logger): Promise<ReadModels> =>
  isEmbeddedUrl(readModels)
    ? (await import('../adapters/embedded/readModels/index.ts')).openReadModels({
        dir: dataDir,
        onDiscarded: (discarded) =>
          logger.warn('The read models were unusable and are made anew from the log', { ...discarded }),
      })
    : (await import('../adapters/mongodb/index.ts')).openMongoReadModels({
        url: readModels,
        onWarn: (message) => logger.warn(message),
      })

/** The blobs alone, as tools want them. */
export const openBlobs = async ({ blobs, dataDir }: Config): Promise<Blobs> =>
  isEmbeddedUrl(blobs)
    ? (await import('../adapters/embedded/blobs.ts')).openBlobs({ dir: join(dataDir, 'blobs') })
    : (await import('../adapters/s3/index.ts')).openS3Blobs(blobs)

/** Positions of another installation's log, which shares Redis and its prefix by mistake, would pass for our own. */
const openHintsOf = async ({ redis, masterKey }: Config, logger: Logger): Promise<Hints> =>
  redis === null
    ? openHints()
    : (await import('../adapters/redis/index.ts')).openRedisHints(redis, logger, installationOf(masterKey))

/** The same on all nodes, and nowhere else. */
const installationOf = (masterKey: Buffer | null): string =>
  masterKey ? `${Buffer.from(hkdfSync('sha256', masterKey, '', 'svc hints', 6)).toString('hex')}:` : ''

const openLimiter = async ({ redis }: Config, logger: Logger): Promise<RateLimiter> =>
  redis === null
    ? openRateLimiter()
    : (await import('../adapters/redis/index.ts')).openRedisRateLimiter(redis, logger)
