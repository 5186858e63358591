/** Guesses the name that an import should have had. */
import { existsSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import * as sdk from '../../sdk/index.ts'
import { fileLike, namesIn } from '../likelyFile.ts'
import { MODULE } from '../namespaces.ts'
import { nearest } from '../nearestName.ts'
import type { Places } from './places.ts'

const getBuiltinModule: (name: string) => unknown = process.getBuiltinModule.bind(process)

/** Packages have names so short that they differ in one character from that of another. */
const SHORTEST_PACKAGE = 5

const MAX_NAME = 256

/** Returns `: did you mean …?` or an advice, or nothing, for an import of a module that does not exist. */
export const importHint = (specifier: string, parentFile: string, { dir }: Pick<Places, 'dir'>): string => {
  if (specifier.length > MAX_NAME) return ''
  if (/^(?:node|data|file|https?):/.test(specifier))
    return specifier.startsWith('node:') ? mean(nearest(specifier, builtinModules.map(withNode))) : ''
  if (specifier.startsWith('#')) return ': names that begin with # are defined by `imports` in package.json'
  if (/^(?:@|~|src)\//.test(specifier))
    return ': paths of tsconfig.json are not applied; bundle the build, or import a relative path'
  if (!/^\.{0,2}(?:\/|$)/.test(specifier)) return packageHint(specifier, dir)
  const folder = dirname(join(dir, parentFile))
  const path = join(folder, specifier)
  if (!`${path}/`.startsWith(`${dir}/`)) return ': the file is not in the build'
  const found = fileLike(path, dir, MODULE)
  return found === undefined ? '' : mean(`${specifier.slice(0, specifier.lastIndexOf('/') + 1)}${found}`)
}

const mean = (name: string | undefined): string => (name === undefined ? '' : `: did you mean '${name}'?`)

const withNode = (name: string): string => (name.startsWith('node:') ? name : `node:${name}`)

const packageHint = (specifier: string, dir: string): string => {
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
  if (name === 'svc') return sdkHint(specifier)
  const installed = namesIn(join(dir, 'node_modules'))
  const scoped = name.startsWith('@')
    ? namesIn(join(dir, 'node_modules', dirname(name))).map((each) => `${dirname(name)}/${each}`)
    : []
  const included = [...installed, ...scoped]
  if (included.includes(name))
    return specifier === name
      ? `: node_modules/${name} has no module that can be imported by this name`
      : `: the package ${name} is in the build, and does not export this path`
  const likely = nearest(name, [...included, ...builtinModules, 'svc'])
  if (likely !== undefined && name.length >= SHORTEST_PACKAGE) return mean(likely)
  return `: bundle the package ${name}, or add node_modules/${name} to the build`
}

/** The runtime provides only `svc`. */
const sdkHint = (specifier: string): string =>
  specifier === 'svc/client'
    ? ': bundle the module svc/client'
    : ': functions import svc, and svc/client if the build is bundled'

const MISSING_EXPORT = /^The requested module '([^']+)' does not provide an export named '([^']+)'/

/** The same for the message about a name that a module does not export. `file` imports it. */
export const exportHint = (message: string, file: string, places: Pick<Places, 'dir' | 'fileOf'>): string => {
  const [, specifier, name] = MISSING_EXPORT.exec(message.slice(0, 2 * MAX_NAME)) ?? []
  if (specifier === undefined || name === undefined) return ''
  const names = exportsOf(specifier, file, places)
  if (name === 'default' && names.length > 0)
    return `: it has no default export, only ${names.slice(0, 5).join(', ')}`
  return mean(nearest(name, names))
}

const exportsOf = (
  specifier: string,
  file: string,
  { dir, fileOf }: Pick<Places, 'dir' | 'fileOf'>,
): string[] => {
  if (specifier === 'svc') return Object.keys(sdk)
  if (!specifier.startsWith('.')) {
    const builtin = getBuiltinModule(specifier)
    return typeof builtin === 'object' && builtin !== null ? Object.keys(builtin) : []
  }
  const target = fileOf(join(dir, dirname(file), specifier))
  return target !== undefined && existsSync(join(dir, target))
    ? exportsIn(readFileSync(join(dir, target), 'utf8'))
    : []
}

const DECLARED =
  /^\s*export\s+(?:async\s+)?(?:const|let|var|function\*?|class)\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)/gmu
const LISTED = /^\s*export\s*\{([^}]*)\}/gm

/** The names that a module exports, as far as they are written as usual: it is not parsed. */
const exportsIn = (code: string): string[] =>
  [
    ...[...code.matchAll(DECLARED)].map(([, name = '']) => name),
    ...[...code.matchAll(LISTED)].flatMap(([, list = '']) =>
      list.split(',').map(
        (each) =>
          each
            .trim()
            .split(/\s+as\s+/)
            .at(-1) ?? '',
      ),
    ),
  ].filter((name) => name !== '' && name !== 'default')
