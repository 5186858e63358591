import { almostModulesOf, isDependency, type NamespaceFile } from '../sandbox/namespaces.ts'
import type { Inspection } from '../ports/runtime.ts'

/** Names in a message; a build may have thousands of files. */
const SHOWN_NAMES = 10
/** Names of ignored files in the reply. */
const MAX_IGNORED = 100

/** Explains to the author of a build without functions what the service found instead. */
export const noFunctions = (files: readonly string[], namespaces: readonly NamespaceFile[]): string => {
  const own = files.filter((file) => !isDependency(file))
  const found =
    namespaces.length > 0
      ? `${listed(namespaces.map(({ file }) => file))} without an exported function`
      : own.length > 0
        ? listed(own)
        : 'no files'
  return `Expected at least one exported function in a module (.js, .mjs, .ts, .mts) outside node_modules, in a path without names that begin with "_" or "."; found ${found}`
}

/** Returns what the author of a build with functions should know about its files. `mistakes`: what is known already. */
export const remarksOn = (
  files: readonly string[],
  mistakes: readonly string[],
): Pick<Extract<Inspection, { ok: true }>, 'ignored' | 'warnings'> => {
  const ignored = almostModulesOf(files).sort().slice(0, MAX_IGNORED)
  const folder = onlyFolderOf(files)
  const warnings = [
    ...(folder === undefined
      ? []
      : [
          `All files are in the folder ${folder}, so each namespace begins with "${folder}."; zip the content of the folder, not the folder itself`,
        ]),
    ...mistakes,
  ]
  return { ...(ignored.length > 0 && { ignored }), ...(warnings.length > 0 && { warnings }) }
}

const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]{0,127}$/u

/** Characters of the name of an export in a message. */
const SHOWN_CHARACTERS = 60

/** Explains exported functions that have no name of JavaScript; empty if there are none. */
export const unnamedText = (file: string, names: readonly string[]): readonly string[] =>
  names.length === 0
    ? []
    : [
        `${file}: Expected the name of each exported function to be an identifier of at most 128 characters, found ` +
          `${listed(names.map((name) => JSON.stringify(name.slice(0, SHOWN_CHARACTERS))))}, which no reference can name`,
      ]

/** Explains functions within exported objects, such as `default.fetch`; empty if there are none. */
export const unusedText = (file: string, unused: readonly string[]): readonly string[] => {
  const named = unused.filter((each) => each.split('.').every((part) => NAME.test(part)))
  if (named.length === 0) return []
  const fetch = named.includes('default.fetch')
    ? '; a function with `webhook` in its metadata receives HTTP requests'
    : ''
  return [
    `${file}: Expected each function to be an export of its own, found ${listed(named)} within an object, which nothing can start${fetch}`,
  ]
}

/** The folder of a package that was zipped as a whole, if there is one. */
const onlyFolderOf = (files: readonly string[]): string | undefined => {
  const folder = files[0]?.split('/')[0] ?? ''
  const isPackage = files.includes(`${folder}/package.json`)
  return isPackage && files.every((file) => file.startsWith(`${folder}/`)) ? folder : undefined
}

const listed = (names: readonly string[]): string => {
  const more = names.length - SHOWN_NAMES
  const shown = names.toSorted().slice(0, SHOWN_NAMES).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}
