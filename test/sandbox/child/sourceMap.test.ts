import { SourceMap } from 'node:module'
import * as assert from 'uvu/assert'
import { originalOf, parseSourceMap } from '../../../src/sandbox/child/sourceMap.ts'
import { type Mapping, mappingsOf } from '../../support/sourceMaps.ts'
import { suite } from '../../support/suite.ts'

const maps = suite('a source map')

/** Positions in no pattern, with differences of one to four digits in both directions. */
const positions = Array.from({ length: 300 }, (_, n): Mapping => {
  const place = { line: Math.floor(n / 7) * (n > 200 ? 2 : 1), column: (n % 7) * 61 }
  if (n % 11 === 10) return place
  return { ...place, source: n % 3, originalLine: (n * 7919) % 40_000, originalColumn: (n * 104_729) % 900 }
}).sort((a, b) => a.line - b.line || a.column - b.column)

const payload = {
  version: 3,
  file: 'out.js',
  names: [],
  sourceRoot: '',
  sources: ['a.ts', 'b.ts', 'c.ts'],
  sourcesContent: [],
  mappings: mappingsOf(positions),
}

maps('gives the same originals as that of Node', () => {
  const map = parseSourceMap(JSON.stringify(payload))
  assert.ok(map)
  const ofNode = new SourceMap(payload)
  for (const { line, column, source } of positions) {
    if (source === undefined) continue
    for (const further of [0, 1, 30]) {
      const entry = ofNode.findEntry(line, column + further)
      assert.ok('originalLine' in entry)
      const found = map && originalOf(map, line + 1, column + further + 1)
      assert.equal(found && [payload.sources[found.source], found.line, found.column], [
        entry.originalSource,
        entry.originalLine + 1,
        entry.originalColumn + 1,
      ])
    }
  }
})

maps('has no original for a part that the bundler wrote', () => {
  const mappings = mappingsOf([
    { line: 0, column: 0, source: 0 },
    { line: 0, column: 10 },
    { line: 2, column: 5, source: 0, originalLine: 3 },
  ])
  const map = parseSourceMap(JSON.stringify({ ...payload, mappings }))
  assert.ok(map)
  if (!map) return
  assert.equal(originalOf(map, 1, 9), { source: 0, line: 1, column: 1 })
  assert.is(originalOf(map, 1, 11), null)
  assert.is(originalOf(map, 2, 1), null)
  assert.is(originalOf(map, 3, 2), null)
  assert.equal(originalOf(map, 3, 6), { source: 0, line: 4, column: 1 })
  assert.is(originalOf(map, 4, 1), null)
})

maps('is ignored when it is malformed', () => {
  for (const json of ['', '{', '[]', 'null', '{"version":2}', '{"version":3,"sections":[]}'])
    assert.is(parseSourceMap(json), null)
  for (const mappings of [
    '!',
    'A',
    'AA',
    'g',
    'gggggggggggA',
    'AAAAA\u{1F600}',
    'AEAA',
    'AADA',
    'AAAAAAAAAAAA',
  ]) {
    const map = parseSourceMap(JSON.stringify({ ...payload, sources: ['a.ts'], mappings }))
    assert.ok(map)
    const found = map && originalOf(map, 1, 1)
    assert.ok(!found || (found.source === 0 && found.line > 0), mappings)
  }
})

maps('may begin with a prefix against its inclusion as a script', () => {
  assert.equal(parseSourceMap(`)]}'\n${JSON.stringify(payload)}`)?.sources, payload.sources)
})

maps.run()
