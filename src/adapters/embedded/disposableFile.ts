import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { syncFolderNow } from '../../disk/sync.ts'
import { messageOf } from '../../errors.ts'
import { isFaultOfFile, unavailable } from './sqlite.ts'

/** A database file that could not be used. Its content is rebuilt from the log (I8). */
export interface Discarded {
  readonly reason: string
  /** The new path of the file, for diagnosis. */
  readonly movedTo: string
}

export type OnDiscarded = (discarded: Discarded) => void

/** The error for a file of another program or format. */
export class AlienFile extends Error {}

/** Opens a file that can be rebuilt. One that is unusable is moved aside and replaced by an empty one. */
export const openDisposable = <T>(file: string, open: (file: string) => T, onDiscarded: OnDiscarded): T => {
  try {
    mkdirSync(dirname(file), { recursive: true })
    if (existsSync(markerOf(file))) return renew(file, open, 'it is damaged', onDiscarded)
    return open(file)
  } catch (error) {
    if (!isFaultOfFile(error)) throw unavailable(error)
    return renew(file, open, messageOf(error), onDiscarded)
  }
}

/** Receives the reason when a file that is in use is damaged: only the next start repairs it. */
export type OnDamaged = (reason: string) => void

/** The damage of a file that is in use. It is reported once, and the next start discards the file. */
export class Damage {
  readonly #file: string
  readonly #onDamaged: OnDamaged
  #isFound = false

  constructor(file: string, onDamaged: OnDamaged) {
    this.#file = file
    this.#onDamaged = onDamaged
  }

  get isFound(): boolean {
    return this.#isFound
  }

  found(): void {
    if (!this.#isFound) this.#onDamaged(this.#reason)
    this.#isFound = true
    try {
      markDamaged(this.#file)
    } catch {
      // The disk is full: the next statement that finds the damage tries again.
    }
  }

  /** Refuses work that needs what is lost. */
  refuse(cause?: unknown): never {
    this.found()
    throw unavailable(new Error(this.#reason, { cause }))
  }

  get #reason(): string {
    return `${basename(this.#file)} is damaged; restart the service, which builds it again`
  }
}

/** Lets the next start discard the file. */
export const markDamaged = (file: string): void => writeFileSync(markerOf(file), '')

const markerOf = (file: string): string => `${file}.damaged`

/** Moves a file aside and opens an empty one in its place. */
export const renew = <T>(
  file: string,
  open: (file: string) => T,
  reason: string,
  onDiscarded: OnDiscarded,
): T => {
  const movedTo = `${file}.unusable`
  rmSync(movedTo, { recursive: true, force: true })
  if (existsSync(file)) renameSync(file, movedTo)
  for (const companion of [`${file}-wal`, `${file}-shm`, markerOf(file)]) rmSync(companion, { force: true })
  syncFolderNow(dirname(file)) // else a power cut can leave the old WAL beside the new file
  onDiscarded({ reason, movedTo })
  return open(file)
}
