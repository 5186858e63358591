import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { AppError, unreadable } from '../errors.ts'
import { writeNewFile } from './newFile.ts'

/**
 * The file of an export: one JSON object per line.
 * L1: each line has its number `n`, the hash of the line before as `previous`, and its own `hash`, which covers all bytes
 * of the line before it.
 * L2: the first line has `export`, the last line has `end`, and each line between them has one `change`.
 * L3: every line ends with a line break, and nothing follows the last one.
 */

/** `previous` of the first line. */
const NOTHING = '0'.repeat(64)

/** The version of the format. */
const VERSION = 1

/** The characters before the hash of a line. */
const BEFORE_HASH = ',"hash":"'
const HASHED = /^(.*),"hash":"([0-9a-f]{64})"\}$/s

const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')

interface Chained {
  readonly line: string
  readonly hash: string
}

const chained = (n: number, previous: string, content: object): Chained => {
  const body = JSON.stringify({ n, previous, ...content }).slice(0, -1)
  const hash = sha256(body)
  return { line: `${body}${BEFORE_HASH}${hash}"}\n`, hash }
}

export interface Exported {
  readonly file: string
  readonly facts: number
  /** The hash of the last line. */
  readonly hash: string
}

/** Writes an export to a new file (`writeNewFile`). */
export const exportAudit = (
  file: string,
  header: object,
  changes: AsyncIterable<object>,
  onWritten: (facts: number) => void,
): Promise<Exported> =>
  writeNewFile(file, async ({ append }) => {
    let last = chained(0, NOTHING, { export: { format: 'svc-audit', version: VERSION, ...header } })
    await append(last.line)
    let facts = 0
    for await (const change of changes) {
      last = chained(++facts, last.hash, { change })
      await append(last.line)
      onWritten(facts)
    }
    last = chained(facts + 1, last.hash, { end: { changes: facts } })
    await append(last.line)
    return { file, facts, hash: last.hash }
  })

export type Verified =
  | { readonly ok: true; readonly facts: number; readonly hash: string }
  /** `line` counts from 1. */
  | { readonly ok: false; readonly line: number; readonly reason: string }

/** Checks an export, and names the first line at which it differs from what was written. `hash`: that of the last line. */
export const verifyExport = async (file: string, hash?: string): Promise<Verified> => {
  let at = 0
  let previous = NOTHING
  let ended = false
  const wrong = (reason: string, line = at): Verified => ({ ok: false, line, reason })
  for await (const { bytes, isCut } of linesOf(file)) {
    at++
    if (ended) return wrong('there is a line after the closing one')
    if (isCut) return wrong('the line is cut off: the file does not end with a complete line')
    const line = parsed(bytes)
    if (!line) return wrong('the line was changed: it is not a line of an export')
    if (line.hash !== line.actual) return wrong('the line was changed: it does not have its hash')
    if (line.n !== at - 1)
      return wrong(
        `a line is missing, added or in another place: expected number ${at - 1}, got ${String(line.n)}`,
      )
    if (line.previous !== previous)
      return wrong('the line was replaced: the next one has another hash of it', at - 1)
    if (at === 1 && line.kind !== 'export') return wrong('expected the first line of an export')
    if (at > 1 && line.kind === 'export') return wrong('expected a change, got the first line of an export')
    if (line.kind === 'end' && line.changes !== at - 2)
      return wrong(`the closing line has ${String(line.changes)} changes, but there are ${at - 2}`)
    ended = line.kind === 'end'
    previous = line.hash
  }
  at++
  if (!ended) return wrong('the closing line is missing: the end of the file was cut off')
  at--
  if (hash !== undefined && hash !== previous)
    return wrong(`the closing line has the hash ${previous}, not the given one: the file was written again`)
  return { ok: true, facts: at - 2, hash: previous }
}

interface Line {
  readonly n: unknown
  readonly previous: unknown
  /** The hash in the line, and the hash of what precedes it. */
  readonly hash: string
  readonly actual: string
  readonly kind: 'export' | 'change' | 'end'
  /** The number of changes in a closing line. */
  readonly changes: unknown
}

const parsed = (bytes: Buffer): Line | null => {
  const text = bytes.toString('latin1') // one character per byte, so that the hash covers exactly these bytes
  const [, body, hash] = HASHED.exec(text) ?? []
  if (body === undefined || hash === undefined) return null
  try {
    const line = JSON.parse(bytes.toString()) as Readonly<Record<string, unknown>>
    const kinds = (['export', 'change', 'end'] as const).filter((name) => name in line)
    const [kind] = kinds
    if (kind === undefined || kinds.length > 1) return null
    const { n, previous } = line
    const changes = (line['end'] as { readonly changes?: unknown } | undefined)?.changes
    return { n, previous, hash, actual: sha256(Buffer.from(body, 'latin1')), kind, changes }
  } catch {
    return null
  }
}

const LINE_BREAK = 0x0a
/** No export has a longer line. */
const MAX_LINE_BYTES = 16 << 20
/** Instead of a longer line, and of what follows it. */
const NO_LINE = Buffer.alloc(0)

/** Yields the lines of a file without their line breaks, as bytes; `isCut`: the last one has none. */
async function* linesOf(file: string): AsyncGenerator<{ readonly bytes: Buffer; readonly isCut: boolean }> {
  let left: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      let from = 0
      for (let end = chunk.indexOf(LINE_BREAK); end >= 0; end = chunk.indexOf(LINE_BREAK, from)) {
        yield { bytes: Buffer.concat([...left, chunk.subarray(from, end)]), isCut: false }
        left = []
        bytes = 0
        from = end + 1
      }
      if (from < chunk.length) left.push(chunk.subarray(from))
      bytes += chunk.length - from
      if (bytes > MAX_LINE_BYTES) {
        yield { bytes: NO_LINE, isCut: false }
        return
      }
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('bad_request', unreadable(file, error), { cause: error })
  }
  if (left.length > 0) yield { bytes: Buffer.concat(left), isCut: true }
}
