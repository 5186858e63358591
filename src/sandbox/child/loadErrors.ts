import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { MAX_CAUSES, MAX_MESSAGE } from '../frames.ts'
import { deniedText } from './deniedText.ts'
import { exportHint } from './likelyNames.ts'
import { loadedFiles } from './modules.ts'
import type { Site } from './sites.ts'
import type { Stacks } from './stacks.ts'
import { cut, type Described, HIDDEN, importedAt, isError, textOf } from './thrown.ts'

/** Describes an error during the loading of a module: its message begins with `file:line: `. */
export const describeLoad = (thrown: unknown, file: string, stacks: Stacks): Described => {
  try {
    const { hide } = stacks.places
    if (!isError(thrown)) return { message: `${file}: Threw ${cut(hide(textOf(thrown)), MAX_MESSAGE)}` }
    const text = [deniedText(thrown) ?? thrown.message, ...causesOf(thrown)].join(': ')
    const message = hide(text.slice(0, 2 * MAX_MESSAGE))
    const location = placeOf(thrown, stacks)
    const site = location ? `${location.file}:${location.line}` : file
    const hint = exportHint(thrown.message, location?.file ?? file, stacks.places)
    const whole = message.startsWith(`${site}: `) ? message : `${site}: ${message}`
    return { message: cut(`${whole}${hint}`, MAX_MESSAGE), ...(location && { location }) }
  } catch {
    return { message: `${file}: ${HIDDEN}` }
  }
}

/** The messages of the causes: those of `fetch` say why it failed. */
const causesOf = ({ cause }: Error, depth = 1): readonly string[] =>
  isError(cause) && depth <= MAX_CAUSES ? [cause.message, ...causesOf(cause, depth + 1)] : []

/** The place of an import, of a syntax error, or of the topmost frame in the build. */
const placeOf = (thrown: Error, stacks: Stacks): Site | undefined => {
  const imported = importedAt(thrown, stacks)
  if (imported) return imported
  const at = headOf(thrown, stacks.places.fileOf)
  if (at) return stacks.siteOf(at.file, at.line, at.column)
  const { location } = stacks.read(String(thrown.stack))
  return location ?? siteOfSyntaxError(thrown, stacks)
}

interface Position {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** V8 puts `path:line` above a syntax error, and the source line and a caret below it. */
const headOf = (
  { name, stack }: Error,
  fileOf: (path: string) => string | undefined,
): Position | undefined => {
  if (name !== 'SyntaxError') return undefined
  const [head = '', , caret = ''] = String(stack).split('\n', 3)
  const [, path = '', line] = /^(\S.*?):(\d+)$/.exec(head) ?? []
  const file = path && fileOf(path)
  return file ? { file, line: Number(line), column: Math.max(0, caret.search(/\^/)) + 1 } : undefined
}

/** V8 does not report the line of a module's syntax error, so the type stripper parses it again. */
const siteOfSyntaxError = (thrown: Error, { places, siteOf }: Stacks): Site | undefined => {
  if (thrown.name !== 'SyntaxError') return undefined
  for (const file of loadedFiles().toReversed()) {
    try {
      stripTypeScriptTypes(readFileSync(join(places.dir, file), 'utf8'), { mode: 'strip' })
    } catch (error) {
      return siteOf(file, syntaxErrorOf(error).line, 1)
    }
  }
  return undefined
}

/** Reads `message` and `line` from an error of the type stripper, whose stack begins with `…:<line>`. */
export const syntaxErrorOf = (thrown: unknown): { message: string; line: number } => {
  if (!isError(thrown)) return { message: String(thrown), line: 1 }
  const line = Number(/^[^\n]*?:(\d+)$/m.exec(String(thrown.stack))?.[1] ?? 1)
  return { message: thrown.message.split('\n').at(-1) ?? thrown.message, line }
}
