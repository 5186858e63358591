import { clock } from '../clock.ts'
import { storeRunOutput } from '../commands/runs/storeRunOutput.ts'
import type { Cause } from '../events/event.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { isRetryable, messageOf } from '../errors.ts'
import { openOutputLimit } from '../events/outputLimit.ts'
import type { LogLine } from '../events/runLog.ts'
import { newId } from '../ids.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from '../loops/backoff.ts'

/** A line waits this long for further lines, so that readers see it within a second. */
const LINGER_MS = 250
/** Bytes of a part: even with every character escaped, the fact is smaller than the limit of every event store. */
const PART_BYTES = 64 << 10
const PART_LINES = 1000

/** Pauses between attempts to store a part. */
const PAUSES = { firstMs: 50, longestMs: 2000 }

interface Deps {
  readonly aggregates: Pick<Aggregates, 'runLogs'>
  readonly logger: Logger
}

/**
 * Stores the output of a run. O1: writing never waits. O2: lines are stored in order, in parts, one append at a time.
 * O3: every line is durable when `close` resolves, before the end of the run is stored.
 */
export class RunOutput {
  readonly #deps: Deps
  readonly #run_id: string
  readonly #cause: Cause
  readonly #waiting: LogLine[] = []
  readonly #limited = openOutputLimit()
  /** A run that was returned has output of several workers. */
  readonly #writer = newId()
  #part = 0
  #timer: NodeJS.Timeout | undefined
  #storing: Promise<void> | undefined

  constructor(deps: Deps, run_id: string, cause: Cause) {
    this.#deps = deps
    this.#run_id = run_id
    this.#cause = cause
  }

  write({ source, text }: { readonly source: LogLine['source']; readonly text: string }): void {
    const line = this.#limited({ source, text })
    if (!line) return
    this.#waiting.push({ at: clock.iso(), ...line })
    this.#timer ??= setTimeout(() => this.#flush(), LINGER_MS)
  }

  /** Resolves when every written line is durable, or was dropped because it cannot be stored. */
  async close(): Promise<void> {
    this.#flush()
    await this.#storing
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length > 0) this.#storing ??= this.#store()
  }

  async #store(): Promise<void> {
    while (this.#waiting.length > 0) await this.#storePart(this.#take())
    this.#storing = undefined // in the same turn: the next line starts another #store
  }

  #take(): LogLine[] {
    let bytes = 0
    let count = 0
    for (const { text } of this.#waiting) {
      bytes += Buffer.byteLength(text)
      if (count > 0 && (bytes > PART_BYTES || count === PART_LINES)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #storePart(lines: LogLine[]): Promise<void> {
    const part = this.#part++
    const stored = { run_id: this.#run_id, writer: this.#writer, part, lines }
    const backoff = new Backoff(PAUSES)
    for (;;) {
      try {
        await storeRunOutput(this.#deps, stored, this.#cause)
        return
      } catch (error) {
        const again = isRetryable(error)
        this.#deps.logger.warn(
          `Output of a run could not be stored and is ${again ? 'retried' : 'dropped'}`,
          {
            run_id: this.#run_id,
            error: messageOf(error),
          },
        )
        if (!again) return
        await backoff.pause({ ref: false })
      }
    }
  }
}
