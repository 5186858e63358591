import type { Console } from 'node:console'
import { StringDecoder } from 'node:string_decoder'
import { MAX_OUTPUT_LINES, OUTPUT_CUT } from '../../events/outputLimit.ts'
import { endOfPart, MAX_LINE } from '../frames.ts'

export type Source = 'stdout' | 'stderr'

/**
 * Splits the output of one run into lines of at most `MAX_LINE` characters, up to `bytes` and `MAX_OUTPUT_LINES` in all. A
 * piece of a longer line counts as a line.
 */
export class LineCutter {
  readonly #emit: (source: Source, line: string) => void
  readonly #partial = { stdout: '', stderr: '' }
  /** Of the sources to which bytes were written: most functions write text only. */
  readonly #decoders: Partial<Record<Source, StringDecoder>> = {}
  /** Of a run that has groups, counters or timers: they are those of the run. */
  console: Console | undefined
  #left: number
  #lines = 0
  #isMarked = false

  constructor(bytes: number, emit: (source: Source, line: string) => void) {
    this.#left = bytes
    this.#emit = emit
  }

  /** The text of what is written. A letter may begin in one write of bytes and end in the next. */
  textOf(source: Source, written: string | Uint8Array): string {
    if (typeof written !== 'string') return (this.#decoders[source] ??= new StringDecoder()).write(written)
    return this.#restOf(source) + written
  }

  write(source: Source, text: string): void {
    if (this.#left <= 0) return
    const cut = text.slice(0, endOfPart(text, 0, this.#left))
    this.#left = cut.length < text.length ? 0 : this.#left - cut.length
    const lines = (this.#partial[source] + cut).split('\n')
    this.#partial[source] = lines.pop() ?? ''
    for (const line of lines) this.#line(source, line)
    while (this.#partial[source].length > MAX_LINE) {
      const end = endOfPart(this.#partial[source], 0, MAX_LINE)
      this.#piece(source, this.#partial[source].slice(0, end))
      this.#partial[source] = this.#partial[source].slice(end)
    }
    if (this.#left <= 0) this.end()
  }

  /** Sends text that has no newline yet, and after the last line the mark that output was cut off. */
  end(): void {
    for (const source of ['stdout', 'stderr'] as const) {
      if (this.#left > 0) this.#partial[source] += this.#restOf(source)
      if (this.#partial[source]) this.#line(source, this.#partial[source])
      this.#partial[source] = ''
    }
    if (this.#left > 0 || this.#isMarked) return
    this.#isMarked = true
    this.#emit('stderr', OUTPUT_CUT)
  }

  #line(source: Source, line: string): void {
    let at = 0
    do {
      const end = endOfPart(line, at, MAX_LINE)
      this.#piece(source, line.slice(at, end))
      at = end
    } while (at < line.length)
  }

  /** What is left of a letter that was not written to its end. */
  #restOf(source: Source): string {
    return this.#decoders[source]?.end() ?? ''
  }

  #piece(source: Source, text: string): void {
    if (this.#lines === MAX_OUTPUT_LINES) return
    this.#emit(source, text)
    if (++this.#lines === MAX_OUTPUT_LINES) this.#left = 0
  }
}
