import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { buffer } from 'node:stream/consumers'
import { styleText } from 'node:util'
import { AppError } from '../errors.ts'
import { utf8 } from './values.ts'

/** Colours a text where the result is shown on a terminal with colours. */
export type Paint = (colour: Colour, text: string) => string
export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'gray' | 'bold'

/** The streams of the process. */
export interface Terminal {
  /** Writes a result. Resolves when the reader can take more. */
  readonly out: (text: string) => Promise<void>
  /** Writes everything else: errors, progress, questions. */
  readonly err: (text: string) => void
  /** The columns of the terminal that shows the result; Infinity for a file or a pipe. */
  readonly columns: number
  /** The columns of the terminal that shows the progress; null without one. */
  readonly progressColumns: number | null
  /** Asks a person; null where nobody can answer. */
  readonly ask: ((question: string, signal: AbortSignal) => Promise<string>) | null
  /** Asks a person for a text that the terminal does not show; null where nobody can answer. */
  readonly askHidden: Terminal['ask']
  /** Opens a URL in the browser of a person; null where nobody can see it. */
  readonly browse: ((url: string) => void) | null
  /** Reads the standard input to its end. */
  readonly input: (signal: AbortSignal) => Promise<string>
  readonly paint: Paint
}

/** Columns of a terminal that does not report its size. */
const DEFAULT_COLUMNS = 80

export const openTerminal = ({ stdin, stdout, stderr }: NodeJS.Process, signal: AbortSignal): Terminal => {
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit() // the reader, such as `head`, has seen enough
    stderr.write(`svc: the result cannot be written: ${error.message}\n`)
    process.exit(1)
  })
  stderr.on('error', () => {}) // nobody reads it
  return {
    async out(text) {
      if (!stdout.write(text)) await once(stdout, 'drain', { signal }).catch(() => {})
    },
    err: (text) => void stderr.write(text),
    columns: stdout.isTTY ? stdout.columns || DEFAULT_COLUMNS : Infinity,
    progressColumns: stderr.isTTY ? stderr.columns || DEFAULT_COLUMNS : null,
    ask: stdin.isTTY && stderr.isTTY ? askIn(stdin, stderr) : null,
    askHidden: stdin.isTTY && stderr.isTTY ? askHiddenIn(stdin, stderr) : null,
    browse: stdin.isTTY && stderr.isTTY ? browse : null,
    input: (signal) => inputOf(stdin, signal),
    paint: stdout.isTTY && stdout.hasColors?.() ? inColour : (_, text) => text,
  }
}

/** The programs that open a URL. A machine without one has no browser, and the command has printed the URL. */
const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' }

const browse = (url: string): void => {
  const opener = spawn(OPENERS[process.platform] ?? 'xdg-open', [url], { stdio: 'ignore', detached: true })
  opener.on('error', () => {})
  opener.unref()
}

const inColour: Paint = (colour, text) => styleText(colour, text, { validateStream: false })

/** Characters of the standard input: far more than the service accepts. */
const MAX_INPUT = 64 << 20

const inputOf = async (stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<string> => {
  let size = 0
  async function* limited(): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > MAX_INPUT)
        throw new AppError('payload_too_large', `standard input: expected at most ${MAX_INPUT} bytes`)
      yield chunk
    }
  }
  const stop = () => void stdin.destroy(new Error('interrupted'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    return utf8(await buffer(limited()), 'standard input')
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

const askIn =
  (input: NodeJS.ReadStream, output: NodeJS.WriteStream): NonNullable<Terminal['ask']> =>
  async (question, signal) => {
    // The terminal edits the line itself, so that Ctrl-C remains a signal.
    const lines = createInterface({ input, output, terminal: false })
    try {
      const ended = once(lines, 'close', { signal }).then(() => null)
      const answer = await Promise.race([lines.question(question, { signal }), ended])
      if (answer === null) output.write('\n')
      return answer ?? ''
    } finally {
      lines.close()
    }
  }

const ETX = '\x03'
const EOT = '\x04'

/** Reads one line in raw mode, in which the terminal shows nothing and Ctrl-C is a character. */
const askHiddenIn =
  (input: NodeJS.ReadStream, output: NodeJS.WriteStream): NonNullable<Terminal['ask']> =>
  async (question, signal) => {
    input.setRawMode(true) // first, because a fast typist answers as soon as the question is shown
    output.write(question)
    let answer = ''
    try {
      const chunks = on(input.setEncoding('utf8').resume(), 'data', { signal }) as AsyncIterable<[string]>
      for await (const [chunk] of chunks)
        for (const char of chunk) {
          if (char === ETX) process.kill(process.pid, 'SIGINT')
          else if (char === '\r' || char === '\n' || char === EOT) return answer
          else if (char === '\x7f' || char === '\b') answer = answer.slice(0, -1)
          else answer += char
        }
      return answer
    } finally {
      input.setRawMode(false)
      input.pause()
      output.write('\n')
    }
  }
