import { isDeepStrictEqual } from 'node:util'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { files, type Import, imports } from './imports.ts'
import { type Layer, layers } from './layers.ts'
import { committed, withLayers } from './lintRules.ts'

/** The layer of a file: the longest path in the table that contains it. */
const layerOf = (file: string): Layer | undefined => {
  const name = file.replace(/\.(?:ts|js)$/, '')
  return layers
    .filter(({ path }) => name === path || name.startsWith(`${path}/`))
    .sort((a, b) => b.path.length - a.path.length)[0]
}

const isAllowed = ({ from, to, isPackage, typeOnly }: Import): boolean => {
  const layer = layerOf(from)
  if (isPackage && to.startsWith('node:') && to !== 'node:sqlite') return true
  if (isPackage) return layer?.packages?.includes(to) ?? false
  const target = layerOf(to)?.path
  if (layer === undefined || target === undefined) return false
  const types = typeOnly ? (layer.types ?? []) : []
  return target === layer.path || layer.imports.includes(target) || types.includes(target)
}

/** The shortest way back from a file to itself, by the files on it. */
const cycleOf = (start: string, next: ReadonlyMap<string, readonly string[]>): string[] | undefined => {
  const ways = [[start]]
  const seen = new Set<string>()
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    for (const file of next.get(way.at(-1) ?? '') ?? []) {
      if (file === start) return [...way, start]
      if (!seen.has(file)) ways.push([...way, file])
      seen.add(file)
    }
  }
  return undefined
}

const architecture = suite('the imports of src')

architecture('are found: a parser that misses them would find every rule kept', () => {
  const from = (file: string) => imports.filter((each) => each.from === file).map(({ to }) => to)
  assert.ok(from('main.ts').includes('start.ts'))
  assert.ok(from('process/engines.ts').includes('adapters/mongodb/index.ts'), 'a lazy import')
  assert.ok(from('api/app.ts').includes('@koa/router'))
  assert.ok(imports.length > files.length)
  assert.equal(
    imports.filter(({ to, isPackage }) => !isPackage && !files.includes(to)).map(({ to }) => to),
    [],
  )
})

architecture('go down the table of layers, and to what it allows', () => {
  const wrong = imports
    .filter((each) => !isAllowed(each))
    .map(({ from, to, typeOnly }) => `${from} -> ${to}${typeOnly ? ' (types)' : ''}`)
  assert.equal(wrong, [])
})

architecture('never lead back to the file that they began in', () => {
  const inside = imports.filter(({ isPackage }) => !isPackage)
  const next = Map.groupBy(inside, ({ from }) => from)
  const targets = new Map([...next].map(([from, list]) => [from, list.map(({ to }) => to)]))
  const cycles = files.map((file) => cycleOf(file, targets)).filter((cycle) => cycle !== undefined)
  assert.equal(
    cycles.map((cycle) => cycle.join(' -> ')),
    [],
  )
})

architecture.run()

const table = suite('the table of layers')

table('lists every layer above all that it imports', () => {
  const upwards = layers.flatMap(({ path, imports, types = [] }, index) =>
    [...imports, ...types]
      .filter((target) => !layers.slice(0, index).some((lower) => lower.path === target))
      .map((target) => `${path} -> ${target}`),
  )
  assert.equal(upwards, [])
})

table('has a layer for every file under src, and files in every layer', () => {
  assert.equal(
    files.filter((file) => layerOf(file) === undefined),
    [],
  )
  const filled = new Set(files.map((file) => layerOf(file)?.path))
  assert.equal(
    layers.map(({ path }) => path).filter((path) => !filled.has(path)),
    [],
  )
})

table('leaves at most seven files at the root of src', () => {
  const root = files.filter((file) => !file.includes('/'))
  assert.ok(root.length <= 7, root.join(', '))
})

table('is what lint checks: after a change of it, `npm run lint:rules` was run', () => {
  assert.ok(
    isDeepStrictEqual(committed(), withLayers(committed())),
    'Expected `npm run lint:rules` to change nothing',
  )
})

table.run()
