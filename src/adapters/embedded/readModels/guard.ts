import { AppError } from '../../../errors.ts'
import { markDamaged } from '../disposableFile.ts'
import { isDamage, unavailable } from '../sqlite.ts'
import { fileIn } from './file.ts'
import type { FullDisk } from './fullDisk.ts'

/** Runs the work of read models until they are closed. Errors of SQLite become `unavailable`. */
export class Guard {
  readonly #dir: string
  readonly #fullDisk: Pick<FullDisk, 'failed' | 'close'>
  readonly #closing = new AbortController()

  constructor(dir: string, fullDisk: Pick<FullDisk, 'failed' | 'close'>) {
    this.#dir = dir
    this.#fullDisk = fullDisk
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  close(): void {
    this.#closing.abort()
    this.#fullDisk.close()
  }

  run<T>(work: () => T): T {
    if (this.isClosed) throw new AppError('unavailable', 'The read models are closed')
    try {
      return work()
    } catch (error) {
      return this.refuse(error)
    }
  }

  refuse(error: unknown): never {
    this.noteDamage(error)
    const cause = error instanceof AppError ? error.cause : error
    this.#fullDisk.failed(cause)
    throw cause instanceof TypeError ? cause : unavailable(error) // no retry helps for a document that cannot be stored
  }

  /** Marks a damaged file, which is discarded at the next open. */
  noteDamage(error: unknown): void {
    if (isDamage(error)) markDamaged(fileIn(this.#dir))
  }
}
