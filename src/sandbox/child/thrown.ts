import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect, types } from 'node:util'
import { MAX_MESSAGE, MAX_STACK } from '../frames.ts'
import { importSite, loadedFiles } from './modules.ts'

export interface Described {
  readonly message: string
  readonly stack?: string
}

/**
 * Describes a thrown value for its reader. Paths are relative to the build; stack frames of Node and of this
 * runtime are omitted. Never throws, not even when a getter of the value throws.
 */
export const describe = (thrown: unknown, dir: string, runtimeDir: string): Described => {
  try {
    if (!isError(thrown)) return { message: cut(textOf(thrown), MAX_MESSAGE) }
    const message = cut(relativePaths(String(thrown.message), dir), MAX_MESSAGE)
    return { message, stack: cut(userFrames(String(thrown.stack), dir, runtimeDir), MAX_STACK) }
  } catch {
    return { message: 'Threw a value that cannot be shown' }
  }
}

/** Returns `file:line: message` for an error during the loading of a module, relative to the build. */
export const describeLoad = (thrown: unknown, file: string, dir: string): string => {
  try {
    if (!isError(thrown)) return `${file}: Threw ${cut(textOf(thrown), MAX_MESSAGE)}`
    const stack = relativePaths(String(thrown.stack), dir)
    const message = relativePaths(String(thrown.message), dir)
    const site =
      importSite(thrown) ?? siteIn(stack, String(thrown.name)) ?? siteOfSyntaxError(thrown, dir) ?? file
    return cut(message.startsWith(`${site}: `) ? message : `${site}: ${message}`, MAX_MESSAGE)
  } catch {
    return `${file}: Threw a value that cannot be shown`
  }
}

/** V8 puts `path:line` above a syntax error; for other errors the topmost frame in the build is used. */
const siteIn = (stack: string, name: string): string | undefined => {
  const lines = stack.split('\n')
  const head = name === 'SyntaxError' ? /^([^\s:()]+:\d+)$/.exec(lines[0] ?? '')?.[1] : undefined
  if (head) return head
  for (const line of lines) {
    const frame = /^ +at (?:.*\()?([^\s():]+:\d+):\d+\)?$/.exec(line)?.[1]
    if (frame && !frame.startsWith('node:') && !frame.startsWith('/')) return frame
  }
  return undefined
}

/** V8 does not report the line of a module's syntax error, so the type stripper parses it again. */
const siteOfSyntaxError = (thrown: Error, dir: string): string | undefined => {
  if (thrown.name !== 'SyntaxError') return undefined
  for (const file of loadedFiles().toReversed()) {
    try {
      stripTypeScriptTypes(readFileSync(join(dir, file), 'utf8'), { mode: 'strip' })
    } catch (error) {
      return `${file}:${syntaxErrorOf(error).line}`
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

const userFrames = (stack: string, dir: string, runtimeDir: string): string =>
  stack
    .split('\n')
    .filter((line) => !/^ +at /.test(line) || !(line.includes(runtimeDir) || /\(?node:[^)]*\)?$/.test(line)))
    .map((line) => relativePaths(line, dir))
    .join('\n')

/** Evaluated code runs in a context with its own `Error` class. */
const isError = (thrown: unknown): thrown is Error => types.isNativeError(thrown) || thrown instanceof Error

const relativePaths = (text: string, dir: string): string =>
  text
    .replaceAll(`file://${dir}/`, '')
    .replaceAll(`${dir}/`, '')
    .replaceAll(encodeURI(`file://${dir}/`), '')

const textOf = (thrown: unknown): string =>
  typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 3, breakLength: 120, getters: false })

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text

/** The directory of a module of this runtime. */
export const dirOf = (moduleUrl: string): string => fileURLToPath(new URL('.', moduleUrl))
