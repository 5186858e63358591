import { readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { MAX_FILE, MAX_SNIPPET } from '../frames.ts'
import { originalLine } from './originalLines.ts'
import { isDependency, type Places } from './places.ts'
import { originalOf, parseSourceMap, type SourceMap } from './sourceMap.ts'

/** A position in the code of the user, as the user wrote it. Line and column begin at 1. */
export interface Site {
  readonly file: string
  readonly line: number
  readonly column: number
  /** The source line, if it is known. */
  readonly snippet?: string
}

/** Bytes of a module and of a source map that are read. Larger ones would not fit into the memory of the process. */
const MAX_SOURCE_BYTES = 16 << 20

/** Sites that are remembered, because a function often fails at the same one. */
const MAX_REMEMBERED = 500

const MAP_COMMENT = /\/\/[#@] ?sourceMappingURL=(\S+)\s*$/
const INLINE = /^data:application\/json(?:;charset=[^;,]+)?(;base64)?,/

/** Finds what the user wrote for a position in a module of the build. */
export const openSites = (places: Places) => {
  const known = new Map<string, Site>()
  /** Only one map is in memory: most builds with maps have few modules. */
  let latest: { readonly file: string; readonly map: SourceMap | null } | undefined

  const mapOf = (file: string): SourceMap | null => {
    if (latest?.file !== file) latest = { file, map: isDependency(file) ? null : readMap(file, places) }
    return latest.map
  }

  const find = (file: string, line: number, column: number): Site => {
    const map = mapOf(file)
    const original = map && originalOf(map, line, column)
    if (!map || !original) return siteAt(file, line, column, textOf(file, places))
    const source = sourceFile(map, original.source, file)
    const content = map.contents[original.source]
    const text = typeof content === 'string' ? content : textOf(source, places)
    return siteAt(source, original.line, original.column, text)
  }

  return (file: string, line: number, column: number): Site => {
    const key = `${file}:${line}:${column}`
    const before = known.get(key)
    if (before) return before
    if (known.size >= MAX_REMEMBERED) known.clear()
    const site = find(file, line, column)
    known.set(key, site)
    return site
  }
}

const siteAt = (file: string, line: number, column: number, text: string | undefined): Site => {
  const code = text === undefined ? undefined : (originalLine(text, line) ?? lineIn(text, line))
  const site = { file: file.slice(0, MAX_FILE), line, column }
  return code?.trim() ? { ...site, snippet: around(code.trimEnd(), column) } : site
}

/** A part of a long line, such as that of minified code. */
const around = (line: string, column: number): string => {
  if (line.length <= MAX_SNIPPET) return line
  const from = Math.max(0, Math.min(column - MAX_SNIPPET / 2, line.length - MAX_SNIPPET))
  return line.slice(from, from + MAX_SNIPPET)
}

const lineIn = (text: string, line: number): string | undefined => {
  let from = 0
  for (let n = 1; n < line; n++) {
    from = text.indexOf('\n', from) + 1
    if (from === 0) return undefined
  }
  const to = text.indexOf('\n', from)
  return text.slice(from, to < 0 ? undefined : to)
}

/** The path of a source, relative to the project of the user: where the build was made does not matter. */
const sourceFile = ({ sources, sourceRoot }: SourceMap, index: number, file: string): string => {
  const source = `${sourceRoot && `${sourceRoot.replace(/\/$/, '')}/`}${sources[index] ?? ''}`
  if (source === '') return file
  const path = source.replace(/^(?:file:\/\/|webpack:\/\/[^/]*\/|[a-z-]+:\/*)/i, '')
  const isRelative = path === source && !posix.isAbsolute(path)
  const whole = isRelative ? posix.join(posix.dirname(file), path) : posix.normalize(path)
  return whole.replace(/^(?:\.{0,2}\/)+/, '')
}

const readMap = (file: string, places: Places): SourceMap | null => {
  const url = MAP_COMMENT.exec(lastLines(textOf(file, places) ?? ''))?.[1]
  if (url === undefined) return null
  const inline = INLINE.exec(url)
  try {
    if (inline) {
      const data = url.slice(inline[0].length)
      return parseSourceMap(inline[1] ? Buffer.from(data, 'base64').toString() : decodeURIComponent(data))
    }
    const path = places.fileOf(join(places.dir, posix.dirname(file), decodeURIComponent(url)))
    const json = path === undefined ? undefined : textOf(path, places)
    return json === undefined ? null : parseSourceMap(json)
  } catch {
    return null // the text of the URL is malformed
  }
}

/** The end of a module from its last comment of a map, because a pattern would try every line before it. */
const lastLines = (text: string): string => text.slice(Math.max(0, text.lastIndexOf('sourceMappingURL=') - 4))

/** The text of a file of the build; undefined if there is none, or if it is too large. */
const textOf = (file: string, { dir }: Places): string | undefined => {
  try {
    const path = join(dir, file)
    if (!path.startsWith(`${dir}/`) || statSync(path).size > MAX_SOURCE_BYTES) return undefined
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
