import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { files } from './imports.ts'
import { type Layer, layers } from './layers.ts'

/**
 * `npm run lint:rules`: writes the rules of layers.ts into .oxlintrc.json, as one override for each layer. They show
 * a wrong import in the editor; imports.test.ts is exact and checks that this file was run.
 */
interface Override {
  readonly files: readonly string[]
  readonly rules: Readonly<Record<string, unknown>>
}

interface Config {
  readonly overrides: readonly Override[]
}

const path = join(import.meta.dirname, '../../.oxlintrc.json')

/** The rules of src come from the table, all others from the file. */
const isGenerated = ({ files, rules }: Override): boolean =>
  files.every((glob) => glob.startsWith('src/')) && Object.keys(rules).join() === 'no-restricted-imports'

export const withLayers = (config: Config): Config => ({
  ...config,
  overrides: [...rules(), ...config.overrides.filter((override) => !isGenerated(override))],
})

export const committed = (): Config => JSON.parse(readFileSync(path, 'utf8')) as Config

/** A later override takes precedence: a layer inside another comes after it. */
const rules = (): Override[] =>
  layers
    .toSorted((a, b) => a.path.split('/').length - b.path.split('/').length)
    .map((layer) => ({
      files: [globOf(layer)],
      rules: { 'no-restricted-imports': ['error', { patterns: patternsOf(layer) }] },
    }))

const globOf = ({ path }: Layer): string => (isFolder(path) ? `src/${path}/**` : `src/${path}.*`)

const everyPackage = [...new Set(layers.flatMap(({ packages = [] }) => packages))].sort()

const patternsOf = ({ path, imports, types = [], packages = [] }: Layer) => {
  const refused = layers.filter((other) => other.path !== path && !imports.includes(other.path))
  const values = refused.filter((other) => types.includes(other.path))
  const all = refused.filter((other) => !values.includes(other))
  const vendors = everyPackage.filter((name) => !packages.includes(name))
  const allowed = [path, ...imports, ...types]
  return [
    pattern(`^(?:${vendors.map(escaped).join('|')})(?:/|$)`, `src/${path} does not import this package`),
    ...targets(path, all, allowed).map((regex) => pattern(regex, `src/${path} does not import this layer`)),
    ...targets(path, values, allowed).map((regex) => ({
      ...pattern(regex, `src/${path} imports only types from this layer`),
      allowTypeImports: true,
    })),
  ]
}

const pattern = (regex: string, rule: string) => ({
  regex,
  message: `${rule}: see test/architecture/layers.ts.`,
})

/** Matches specifiers that lead to the others; not to those with an allowed layer inside, which lint cannot except. */
const targets = (from: string, others: readonly Layer[], allowed: readonly string[]): string[] => {
  const folder = isFolder(from) ? from : dirname(from)
  const names = others
    .filter(({ path }) => !allowed.some((layer) => layer.startsWith(`${path}/`)))
    .map(({ path }) => `${escaped(specifierOf(folder, path))}${isFolder(path) ? '/' : '\\.'}`)
  const [beside, above] = [
    names.filter((name) => !name.startsWith(UP)),
    names.filter((name) => name.startsWith(UP)),
  ]
  return [
    ...(beside.length > 0 ? [`^\\./(?:${beside.join('|')})`] : []),
    ...(above.length > 0 ? [`^(?:${UP})+(?:${above.map((name) => name.slice(UP.length)).join('|')})`] : []),
  ]
}

const UP = '\\.\\./'

/** The specifier of the other layer in a file of the folder, with at most one step up; the rules match more steps too. */
const specifierOf = (folder: string, path: string): string =>
  relative(folder, path).replace(/^(?:\.\.\/)+/, '../')

const isFolder = (path: string): boolean => files.some((file) => file.startsWith(`${path}/`))

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

if (import.meta.main) writeFileSync(path, JSON.stringify(withLayers(committed()), null, 2))
