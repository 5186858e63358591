import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect, types } from 'node:util'
import { importSite, loadedFiles } from './modules.ts'

const MAX_MESSAGE = 8 << 10
const MAX_STACK = 16 << 10

export interface Described {
  readonly message: string
  readonly stack?: string
}

/**
 * What user code threw, be it an error or not, for people to read: paths are relative to the build, and
 * frames of Node and of this runtime are left out. Never throws, whatever getters the value has.
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

/** `file:line: message` of an error met while a module was loading, relative to the build. */
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

/** V8 puts `path:line` above a syntax error; for others it is the topmost frame in the build. */
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

/** V8 keeps to itself where a module has its syntax error, so another parser is asked. */
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

/** The stripper's error: `message`, and in its first stack line `:<line>`. */
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

/** Errors of evaluated code come from a context with an `Error` of its own. */
const isError = (thrown: unknown): thrown is Error => types.isNativeError(thrown) || thrown instanceof Error

const relativePaths = (text: string, dir: string): string =>
  text
    .replaceAll(`file://${dir}/`, '')
    .replaceAll(`${dir}/`, '')
    .replaceAll(encodeURI(`file://${dir}/`), '')

const textOf = (thrown: unknown): string =>
  typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 3, breakLength: 120, getters: false })

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text

/** The directory of a module of this runtime. */
export const dirOf = (moduleUrl: string): string => fileURLToPath(new URL('.', moduleUrl))
