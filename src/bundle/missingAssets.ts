/**
 * Finds files that functions read relative to their module and that no build would contain. Without a warning, the run would
 * be the first to report them.
 */
import { readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { BundleMessage } from './bundle.ts'
import type { Settings } from './settings.ts'

/** `new URL('./a.txt', import.meta.url)` */
const URL_OF = /\bnew\s+URL\(\s*(['"`])([^'"`$\n]+)\1\s*,\s*import\.meta\.url\s*,?\s*\)/g
/** `join(import.meta.dirname, 'a', 'b.txt')` */
const JOINED =
  /\b(?:join|resolve)\(\s*(?:import\.meta\.dirname|__dirname)((?:\s*,\s*(?:'[^'\n]+'|"[^"\n]+"))+)\s*,?\s*\)/g
const MODULE = /\.[cm]?[jt]sx?$/
const TEXT = /'([^']+)'|"([^"]+)"/g
/** The line before a text that is in a comment. */
const COMMENT = /^\s*(?:\/\/|\/?\*)|\s\/\/\s/
/** A URL of another place, a path of the machine, or a folder above that no build has. */
const ELSEWHERE = /^(?:[A-Za-z][\w+.-]*:|\/|#|\?)/

interface Reading {
  readonly path: string
  readonly index: number
}

interface Built {
  /** Own modules, relative to the folder of the project. */
  readonly sources: readonly string[]
  /** The other files of the build, relative to `src`. */
  readonly assets: ReadonlySet<string>
}

/** A warning at each place that reads a file or folder which exists, but is not in the build. */
export const missingAssets = (settings: Settings, built: Built): readonly BundleMessage[] =>
  built.sources
    .filter(isBelow(settings.src)) // others have the URL of their chunk
    .flatMap((file) => {
      const source = readFileSync(join(settings.folder, file), 'utf8')
      return readingsOf(source).flatMap(({ path, index }) => {
        const what = problemOf(settings, posix.join(posix.dirname(file), path), built)
        return what === null ? [] : [messageAt(file, source, index, what)]
      })
    })

const readingsOf = (source: string): readonly Reading[] => {
  if (!source.includes('import.meta') && !source.includes('__dirname')) return []
  const urls = [...source.matchAll(URL_OF)].map(({ 2: path = '', index }) => ({ path: decoded(path), index }))
  const joined = [...source.matchAll(JOINED)].map(({ 1: texts = '', index }) => ({
    path: posix.join(...[...texts.matchAll(TEXT)].map(([, single, double]) => single ?? double ?? '')),
    index,
  }))
  return [...urls, ...joined].filter(
    ({ path, index }) => !ELSEWHERE.test(path) && !COMMENT.test(lineBefore(source, index)),
  )
}

const lineBefore = (source: string, index: number): string =>
  source.slice(source.lastIndexOf('\n', index) + 1, index)

/** A URL has the characters of a path escaped. */
const decoded = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** What is wrong with reading a file or folder of the project; null if it is in the build, or is no file of the author. */
const problemOf = ({ folder, src }: Settings, path: string, { sources, assets }: Built): string | null => {
  const file = path.replace(/\/$/, '')
  const found = statSync(join(folder, file), { throwIfNoEntry: false })
  if (!found || MODULE.test(file)) return null
  const name = posix.relative(src, file)
  if (name.startsWith('../'))
    return `${file} is not in the build: move it into ${src}, and add it to svc.assets in package.json`
  const isBuilt = found.isFile()
    ? assets.has(name)
    : [...assets].some(isBelow(name)) || sources.some(isBelow(file))
  const pattern = found.isFile() ? name : `${name}/**`
  return isBuilt
    ? null
    : `${file} is not in the build: add ${JSON.stringify(pattern)} to svc.assets in package.json`
}

/** Whether paths are inside of a folder; everything is inside of the root. */
const isBelow =
  (folder: string) =>
  (path: string): boolean =>
    folder === '' || folder === '.' || path.startsWith(`${folder}/`)

/** A message at the place of a character of a source. */
const messageAt = (file: string, source: string, index: number, text: string): BundleMessage => {
  const before = source.slice(0, index).split('\n')
  const line = before.length
  const sourceLine = source.split('\n')[line - 1] ?? ''
  return { text, file, line, column: (before.at(-1) ?? '').length + 1, sourceLine }
}
