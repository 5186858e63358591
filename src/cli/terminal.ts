import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'

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
