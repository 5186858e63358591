import { AppError } from '../../../errors.ts'
import { markDamaged } from '../disposableFile.ts'
import { isDamage, unavailable } from '../sqlite.ts'
import { fileIn } from './file.ts'

/** Runs the work of read models until they are closed. Errors of SQLite become `unavailable`. */
export class Guard {
  readonly #dir: string
  readonly #closing = new AbortController()

  constructor(dir: string) {
    this.#dir = dir
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  close(): void {
    this.#closing.abort()
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
    throw cause instanceof TypeError ? cause : unavailable(error) // no retry helps for a document that cannot be stored
  }

  /** Marks a damaged file, which is discarded at the next open. */
  noteDamage(error: unknown): void {
    if (isDamage(error)) markDamaged(fileIn(this.#dir))
  }
}
