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
import type { Hold } from '../ports/runtime.ts'

/** A line waits this long for further lines, so that readers see it within a second. */
const LINGER_MS = 250
/** Bytes of a part: even with every character escaped, the fact is smaller than the limit of every event store. */
const PART_BYTES = 64 << 10
const PART_LINES = 1000
/** The memory of a line that waits, beside its text. */
const LINE_BYTES = 256

/** Pauses between attempts to store a part. */
const PAUSES = { firstMs: 50, longestMs: 2000 }

interface Deps {
  readonly aggregates: Pick<Aggregates, 'runLogs'>
  readonly logger: Logger
}

interface WaitingLine {
  readonly line: LogLine
  /** To be called when the line takes no memory any more. */
  readonly release: () => void
}

/**
 * Stores the output of a run. O1: writing never waits. O2: lines are stored in order, in parts, one append at a time.
 * O3: every line is durable when `close` resolves, before the end of the run is stored. O4: a line counts as memory of its
 * process until it is stored or dropped, so the process waits for an event store that does not answer.
 */
export class RunOutput {
  readonly #deps: Deps
  readonly #run_id: string
  readonly #cause: Cause
  readonly #waiting: WaitingLine[] = []
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

  write({ source, text }: Omit<LogLine, 'at'>, hold: Hold = unheld): void {
    const line = this.#limited({ source, text })
    if (!line) return
    const release = hold(LINE_BYTES + 2 * line.text.length) // O4
    this.#waiting.push({ line: { at: clock.iso(), ...line }, release })
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
    while (this.#waiting.length > 0) {
      const taken = this.#take()
      await this.#storePart(taken.map(({ line }) => line))
      for (const { release } of taken) release() // O4
    }
    this.#storing = undefined // in the same turn: the next line starts another #store
  }

  #take(): WaitingLine[] {
    let bytes = 0
    let count = 0
    for (const { line } of this.#waiting) {
      bytes += Buffer.byteLength(line.text)
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

const unheld: Hold = () => () => {}
