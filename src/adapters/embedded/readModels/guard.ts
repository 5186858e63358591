import { AppError } from '../../../errors.ts'
import type { Damage } from '../disposableFile.ts'
import { isLoss, unavailable } from '../sqlite.ts'
import type { FullDisk } from './fullDisk.ts'

/** Runs the work of read models until they are closed. Errors of SQLite become `unavailable`. */
export class Guard {
  readonly #damage: Pick<Damage, 'found' | 'refuse'>
  readonly #fullDisk: Pick<FullDisk, 'failed' | 'close'>
  readonly #closing = new AbortController()

  constructor(damage: Pick<Damage, 'found' | 'refuse'>, fullDisk: Pick<FullDisk, 'failed' | 'close'>) {
    this.#damage = damage
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
    const cause = error instanceof AppError ? error.cause : error
    if (isDamage(cause)) this.#damage.refuse(cause)
    this.#fullDisk.failed(cause)
    throw cause instanceof TypeError ? cause : unavailable(error) // no retry helps for a document that cannot be stored
  }

  /** Notes the failure of work that no caller waits for. */
  noteDamage(error: unknown): void {
    if (isDamage(error)) this.#damage.found()
  }
}

/** A stored document that is no JSON is damage too. */
const isDamage = (error: unknown): boolean => error instanceof SyntaxError || isLoss(error)
