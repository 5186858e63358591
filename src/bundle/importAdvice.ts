import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import { fileLike, namesIn } from '../sandbox/likelyFile.ts'
import { nearest } from '../sandbox/nearestName.ts'

/** The files that can be imported without their extension. */
const MODULE = /\.[cm]?[jt]sx?$/

/** Packages have names so short that they differ in one character from that of another. */
const SHORTEST_PACKAGE = 5

/** Returns what to do about an import that cannot be resolved; null if nothing is likely. `file` imports it. */
export const importAdvice = (specifier: string, file: string, folder: string): string | null => {
  if (specifier.startsWith('#')) return 'names that begin with # are defined by `imports` in package.json'
  if (/^(?:@|~)\//.test(specifier)) return 'define it in `paths` of tsconfig.json, or import a relative path'
  if (!/^\.{0,2}(?:\/|$)/.test(specifier)) return packageAdvice(specifier, folder)
  const found = fileLike(join(folder, dirname(file), specifier), folder, MODULE)
  return found === undefined ? null : mean(`${specifier.slice(0, specifier.lastIndexOf('/') + 1)}${found}`)
}

const mean = (name: string): string => `did you mean "${name}"?`

const packageAdvice = (specifier: string, folder: string): string => {
  const [scopeOrName = '', name = ''] = specifier.split('/')
  const isScoped = specifier.startsWith('@')
  const wanted = isScoped ? `${scopeOrName}/${name}` : scopeOrName
  const modules = join(folder, 'node_modules')
  const scoped = isScoped ? namesIn(join(modules, scopeOrName)).map((each) => `${scopeOrName}/${each}`) : []
  const installed = [...namesIn(modules), ...scoped]
  if (installed.includes(wanted)) return `the package ${wanted} is installed, and does not export this path`
  const likely = nearest(specifier, builtinModules) ?? nearest(wanted, [...installed, 'svc'])
  return likely !== undefined && specifier.length >= SHORTEST_PACKAGE
    ? mean(likely)
    : `the package is not installed: npm i ${wanted}`
}
