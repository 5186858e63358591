import type { BackupStart } from '../../backup/source.ts'
import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../logger.ts'
import type { HeldBlobs } from '../../ports/blobs.ts'
import type { StoredLog } from '../../ports/storedLog.ts'
import type { CommandDeps } from '../deps.ts'
import { RETENTION_GROUP } from '../orgs/renewRetention.ts'
import { type Founded, readInstallation } from '../installation/readInstallation.ts'

/** A backup ends by itself when no request has used it for this time, so that removed blobs do not stay for ever. */
const IDLE_MS = 5 * 60_000
/** Backups at the same time. A killed one ends later than its successor begins. */
const MOST = 16
/** Wrapped keys. An erased key must be gone at once. */
const KEYS = 'keys/'

/** A backup in progress. */
export interface OpenBackup extends BackupStart {
  readonly log: StoredLog
  readonly blobs: HeldBlobs
}

interface Lease {
  readonly backup: OpenBackup
  readonly timer: NodeJS.Timeout
  /** Requests that use it now. */
  users: number
}

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'blobs'> & { readonly logger: Pick<Logger, 'info'> }

/**
 * The backups in progress on this node. Each one has the log up to a position, and holds every blob that existed then:
 * B1: blobs are held before the position is read, so every blob of a fact up to the position can be read until the end.
 * B2: a removed data key is never held, so an erased key is in no backup that reads it later.
 * B3: a backup without requests ends after `IDLE_MS`, and with it the hold.
 */
export class Backups {
  readonly #deps: Deps
  readonly #leases = new Map<string, Lease>()

  readonly #idleMs: number

  constructor(deps: Deps, { idleMs = IDLE_MS }: { readonly idleMs?: number } = {}) {
    this.#deps = deps
    this.#idleMs = idleMs
  }

  /**
   * Logs the cause, because a backup contains everything and leaves no fact. Rejects with `conflict` on engines that are not
   * embedded, and during a rotation of the master key.
   */
  async begin({ correlation_id: request_id, ip }: Partial<Cause> = {}): Promise<OpenBackup> {
    const { store, blobs, logger } = this.#deps
    if (!store.storedLog || !blobs.hold)
      throw new AppError(
        'conflict',
        'Expected an embedded event store and embedded blobs: back up external engines with their own tools ' +
          '(docs/operations.md, Backup)',
      )
    await this.#makeRoom()
    const { current, log_ids } = await this.#installation()
    const held = blobs.hold((key) => !key.startsWith(KEYS)) // B2
    try {
      const log = store.storedLog() // B1
      const backup: OpenBackup = {
        backup_id: newId(),
        log_id: log_ids.at(-1) ?? '',
        position: log.position,
        master_key_id: current.id,
        canary: current.canary,
        consumers: log.consumers.filter(({ group }) => group !== RETENTION_GROUP),
        log,
        blobs: held,
      }
      const timer = setTimeout(() => this.#expire(backup.backup_id), this.#idleMs).unref()
      this.#leases.set(backup.backup_id, { backup, timer, users: 0 })
      logger.info('A backup began', { backup_id: backup.backup_id, position: log.position, request_id, ip })
      return backup
    } catch (error) {
      await held.release()
      throw error
    }
  }

  /** Returns a backup in progress, which is used until the signal aborts. Throws `not_found`. */
  use(backup_id: string, until: AbortSignal): OpenBackup {
    const lease = this.#leaseOf(backup_id)
    lease.users++
    const done = () => {
      lease.users--
      lease.timer.refresh()
      if (this.#leases.delete(backup_id)) this.#leases.set(backup_id, lease) // the last one used is the last one
    }
    if (until.aborted) done()
    else until.addEventListener('abort', done, { once: true })
    return lease.backup
  }

  /**
   * Ends a backup. Rejects with `conflict` if the master key was replaced meanwhile: the copied keys are wrapped with the
   * new one, and the log up to the position names the former one.
   */
  async complete(backup_id: string): Promise<void> {
    const { backup } = this.#leaseOf(backup_id)
    await this.end(backup_id)
    const { current } = await this.#installation()
    if (current.id !== backup.master_key_id) throw rotating()
  }

  async end(backup_id: string): Promise<void> {
    const lease = this.#leases.get(backup_id)
    if (!lease) return
    this.#leases.delete(backup_id)
    clearTimeout(lease.timer)
    this.#deps.logger.info('A backup ended', { backup_id })
    lease.backup.log.release()
    await lease.backup.blobs.release()
  }

  #leaseOf(backup_id: string): Lease {
    const lease = this.#leases.get(backup_id)
    if (lease) return lease
    throw new AppError(
      'not_found',
      `No backup ${backup_id} is in progress: it ended, or the service was restarted; repeat svc backup, which continues it`,
    )
  }

  /** Ends the backup that was not used for the longest time, if there are many: its client was probably killed. */
  async #makeRoom(): Promise<void> {
    if (this.#leases.size < MOST) return
    const [idle] = [...this.#leases].find(([, { users }]) => users === 0) ?? []
    if (idle === undefined)
      throw new AppError(
        'unavailable',
        `Expected at most ${MOST} backups at a time; wait until one has ended`,
      )
    await this.end(idle)
  }

  #expire(backup_id: string): void {
    const lease = this.#leases.get(backup_id)
    if (lease && lease.users > 0) lease.timer.refresh()
    else void this.end(backup_id).catch(() => {}) // what remains is removed at the next start
  }

  async #installation(): Promise<Founded> {
    const found = await readInstallation(this.#deps)
    if (found === null) throw new AppError('internal_server_error', 'Expected an installation, got none')
    if (found.former !== null) throw rotating()
    return found
  }
}

const rotating = (): AppError =>
  new AppError(
    'conflict',
    'The master key is being replaced; repeat the backup when `svc secrets status` reports that it is done',
  )
