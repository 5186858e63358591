/** Source maps, version 3. One look-up reads the mappings from their beginning, so that a map needs no index in memory. */

export interface Original {
  /** The index of the source in the map. */
  readonly source: number
  /** Both begin at 1. */
  readonly line: number
  readonly column: number
}

export interface SourceMap {
  readonly sources: readonly string[]
  readonly sourceRoot: string
  readonly contents: readonly unknown[]
  readonly mappings: string
}

/** Returns null for anything but a plain source map. Maps with sections are rare and are not read. */
export const parseSourceMap = (json: string): SourceMap | null => {
  let map: unknown
  try {
    map = JSON.parse(json.replace(/^\)\]\}'[^\n]*\n/, '')) // a prefix against inclusion as a script
  } catch {
    return null
  }
  if (typeof map !== 'object' || map === null) return null
  const { version, sources, sourceRoot, sourcesContent, mappings } = map as Record<string, unknown>
  if (version !== 3 || !Array.isArray(sources) || typeof mappings !== 'string') return null
  return {
    sources: sources.map((source: unknown) => (typeof source === 'string' ? source : '')),
    sourceRoot: typeof sourceRoot === 'string' ? sourceRoot : '',
    contents: Array.isArray(sourcesContent) ? (sourcesContent as unknown[]) : [],
    mappings,
  }
}

const COMMA = 0x2c
const SEMICOLON = 0x3b
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const VALUES = new Int8Array(128).fill(-1)
for (let value = 0; value < DIGITS.length; value++) VALUES[DIGITS.charCodeAt(value)] = value

/** A digit has five bits, and this bit if more digits follow. */
const CONTINUES = 32
const BITS = 5
const MAX_SHIFT = 30

/** Fields of a segment: the generated column, then source, line and column as differences to the segment before. */
const GENERATED = 0
const SOURCE = 1
const LINE = 2
const COLUMN = 3

/** Returns the original of a position in the generated file, which begins at 1:1; null if it has none. */
export const originalOf = (
  { mappings, sources }: SourceMap,
  line: number,
  column: number,
): Original | null => {
  const state = [0, 0, 0, 0, 0]
  let found: Original | null = null
  let generatedLine = 1
  for (let at = 0; at < mappings.length && generatedLine <= line;) {
    const code = mappings.charCodeAt(at)
    if (code === SEMICOLON) {
      generatedLine++
      state[GENERATED] = 0
      at++
      continue
    }
    if (code === COMMA) {
      at++
      continue
    }
    let fields = 0
    while (at < mappings.length && fields < state.length) {
      let value = 0
      let digit = CONTINUES
      for (let shift = 0; digit & CONTINUES; shift += BITS) {
        digit = VALUES[mappings.charCodeAt(at)] ?? -1
        if (digit < 0 || shift > MAX_SHIFT) return null
        value |= (digit & (CONTINUES - 1)) << shift
        at++
      }
      const before = state[fields] ?? 0
      state[fields++] = before + (value & 1 ? -(value >>> 1) : value >>> 1)
      const next = mappings.charCodeAt(at)
      if (next === COMMA || next === SEMICOLON) break
    }
    if (generatedLine < line) continue
    if ((state[GENERATED] ?? 0) >= column) break
    found = fields > COLUMN ? originalIn(state) : null
  }
  return found && found.source >= 0 && found.source < sources.length && found.line > 0 ? found : null
}

const originalIn = (state: readonly number[]): Original => ({
  source: state[SOURCE] ?? 0,
  line: (state[LINE] ?? 0) + 1,
  column: (state[COLUMN] ?? 0) + 1,
})
