import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** One file of src that names another module. */
export interface Import {
  /** Relative to src: `api/route.ts`. */
  readonly from: string
  /** A file relative to src, or a package: `node:fs`, `@koa/router`. */
  readonly to: string
  readonly isPackage: boolean
  /** Whether nothing of it is left once the types are stripped. */
  readonly typeOnly: boolean
}

const src = join(import.meta.dirname, '../../src')

/** The files under src, relative to it. */
export const files: readonly string[] = globSync('**/*.{ts,tsx,js}', { cwd: src }).sort()

const CLAUSE = String.raw`(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\w+|(?:\w+,\s*)?\{[^}]*\})`
const STATEMENT = new RegExp(
  String.raw`^(?:import|export)\s+(?<clause>${CLAUSE})\s+from\s+'(?<at>[^']+)'`,
  'gm',
)
const EFFECT_OR_LAZY = /^import\s+'(?<effect>[^']+)'|\bimport\('(?<lazy>[^']+)'\)/gm

const isTypeOnly = (clause: string): boolean =>
  clause.startsWith('type ') ||
  (clause.startsWith('{') &&
    clause
      .slice(1, -1)
      .split(',')
      .filter((name) => name.trim() !== '')
      .every((name) => name.trim().startsWith('type ')))

const importsIn = (file: string): Import[] => {
  const source = readFileSync(join(src, file), 'utf8')
  const named = (specifier: string, typeOnly: boolean): Import =>
    specifier.startsWith('.')
      ? { from: file, to: relative(src, join(src, dirname(file), specifier)), isPackage: false, typeOnly }
      : { from: file, to: packageOf(specifier), isPackage: true, typeOnly }
  return [
    ...[...source.matchAll(STATEMENT)].map(({ groups }) =>
      named(groups?.['at'] ?? '', isTypeOnly(groups?.['clause'] ?? '')),
    ),
    ...[...source.matchAll(EFFECT_OR_LAZY)].map(({ groups }) =>
      named(groups?.['effect'] ?? groups?.['lazy'] ?? '', false),
    ),
  ]
}

/** `@koa/router` of `@koa/router/dist/x.js`; Node's modules keep their whole name. */
const packageOf = (specifier: string): string =>
  specifier.startsWith('node:')
    ? specifier
    : specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

/** Every import of every file under src. */
export const imports: readonly Import[] = files.flatMap(importsIn)
