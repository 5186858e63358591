import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { BundleFailed, type BundleMessage } from '../../bundle/bundle.ts'
import { CONTEXT_KEY_RULE, isContextKey, MAX_VALUE_BYTES } from '../../events/contextKey.ts'
import { withoutBom } from '../../text/withoutBom.ts'

/** A context variable of the file. */
export interface Variable {
  readonly value: string
  /** From 1. */
  readonly line: number
}

/**
 * The variables of a file such as `.env.svc`, by key. Throws `BundleFailed` with every line that cannot become one, by the
 * rules of the service. A wrong key is not shown: the last line of a key in base64 looks like one.
 */
export const variablesIn = (folder: string, file: string): ReadonlyMap<string, Variable> => {
  const text = withoutBom(readFileSync(join(folder, file), 'utf8'))
  const values = parseEnv(text)
  const variables = new Map<string, Variable>()
  const wrong: BundleMessage[] = []
  for (const [index, content] of flattened(text).split('\n').entries()) {
    const line = index + 1
    const mistake = mistakeIn(content, values)
    if (mistake !== null) wrong.push(wrongLine(file, line, mistake))
    const key = keyIn(content)
    if (key !== undefined) variables.set(key, { value: values[key] ?? '', line })
  }
  if (wrong.length > 0) throw new BundleFailed(wrong)
  return variables
}

/** A message about a line, which is not shown because it may contain a secret. */
export const wrongLine = (file: string, line: number | null, text: string): BundleMessage => ({
  text,
  file,
  line,
  column: null,
  sourceLine: null,
})

const mistakeIn = (line: string, values: NodeJS.Dict<string>): string | null => {
  if (/^\s*(?:$|#)/.test(line)) return null
  const key = keyIn(line)
  if (key === undefined) return 'expected KEY=value, a comment that begins with #, or an empty line'
  if (!isContextKey(key)) return `expected a key of ${CONTEXT_KEY_RULE} before =`
  const bytes = Buffer.byteLength(values[key] ?? '')
  return bytes > MAX_VALUE_BYTES ? `${key}: expected at most ${MAX_VALUE_BYTES} bytes, got ${bytes}` : null
}

/** `parseEnv` ignores the lines without one. */
const keyIn = (line: string): string | undefined => /^\s*(?:export\s+)?([^\s=#]+)\s*=/.exec(line)?.[1]

/** A value in quotes, which may have several lines. A quote elsewhere, such as in a comment, begins none. */
const QUOTED = /^([ \t]*(?:export\s+)?[^\s=#]+[ \t]*=[ \t]*)(["'`])([^]*?)\2/gm

/** The text with only the line breaks of the values in quotes. */
const flattened = (text: string): string =>
  text.replace(QUOTED, (_, before: string, __: string, value: string) => before + value.replace(/[^\n]/g, ''))
