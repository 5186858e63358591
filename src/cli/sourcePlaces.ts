import { readFileSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import {
  type Bundle,
  BundleFailed,
  type BundleMessage,
  messageAbout,
  textOfMessage,
} from '../bundle/bundle.ts'
import { ServiceError } from '../client/index.ts'
import { isAppError, messageOf } from '../errors.ts'

interface Project extends Pick<Bundle, 'modules'> {
  readonly folder: string
}

/** Runs what loads a build. Its refusal names the line of the source; the build has other files. */
export const withSourcePlaces = async <Result>(
  { folder, modules }: Project,
  load: () => Promise<Result>,
): Promise<Result> => {
  try {
    return await load()
  } catch (error) {
    const isRefusal =
      isAppError(error, 'bad_request') || (error instanceof ServiceError && error.status === 400)
    const message = isRefusal ? messageIn(messageOf(error), folder, modules) : null
    throw message === null || message.file === null ? error : new BundleFailed([message])
  }
}

/** The warnings of the service, with the lines of the project that they name. */
export const warningsIn = (texts: readonly string[], { folder, modules }: Project): readonly string[] =>
  texts.map((text) => textOfMessage(messageIn(text, folder, modules)))

/** A message of the service, with the line of the project that it names: `src/a.ts:3:7: …`, or `a.js: name: …`. */
export const messageIn = (text: string, folder: string, modules: readonly string[]): BundleMessage => {
  const [, output, about = ''] = /^(\S+)\.js: (.*)$/s.exec(text) ?? []
  const module = output === undefined ? undefined : sourceOf(output, modules)
  if (module !== undefined) {
    const [, name] = /^(\S+): /.exec(about) ?? []
    return name === undefined
      ? messageAbout(module, about)
      : declarationIn(folder, { file: module, name, text: about })
  }
  const [, before = '', file, line, column, after = ''] =
    /^(.*?)([^\s():]+\.[cm]?[jt]sx?):(\d+)(?::(\d+))?:?\s*(.*)$/s.exec(text) ?? []
  if (file === undefined) return messageAbout(null, text)
  const sourceLine = sourceLineOf(folder, file, Number(line))
  if (sourceLine === null) return messageAbout(null, text)
  return {
    text: `${before}${after}`.trim(),
    file,
    line: Number(line),
    column: column === undefined ? null : Number(column),
    sourceLine,
  }
}

/** The module of a file of the build, which lacks the folder of the sources and its extension. */
const sourceOf = (output: string, modules: readonly string[]): string | undefined =>
  modules
    .filter((path) => `/${path.replace(/\.[^.]+$/, '')}`.endsWith(`/${output}`))
    .sort((a, b) => a.length - b.length)[0]

/** A message about an exported function, at its declaration. */
const declarationIn = (
  folder: string,
  { file, name, text }: { readonly file: string; readonly name: string; readonly text: string },
): BundleMessage => {
  const declared = new RegExp(`(?<=(?:const|let|var|function\\*?|class)\\s+)${RegExp.escape(name)}(?![\\w$])`)
  const sources = readFileSync(join(folder, file), 'utf8').split('\n')
  const index = sources.findIndex((line) => declared.test(line))
  if (index < 0) return messageAbout(file, text)
  const sourceLine = (sources[index] ?? '').slice(0, MAX_SOURCE_LINE)
  return { text, file, line: index + 1, column: sourceLine.search(declared) + 1, sourceLine }
}

/** A line of a file in the folder. Other files are not read, because the service decides the name. */
const sourceLineOf = (folder: string, file: string, line: number): string | null => {
  const path = relative(folder, resolve(folder, file))
  if (path.startsWith('..') || isAbsolute(path)) return null
  try {
    return readFileSync(join(folder, path), 'utf8').split('\n')[line - 1]?.slice(0, MAX_SOURCE_LINE) ?? null
  } catch {
    return null // it is not a file of the project
  }
}

/** Characters of a source line that are shown. */
const MAX_SOURCE_LINE = 200
