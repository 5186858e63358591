export const MODULE = /\.(?:js|mjs|ts|mts)$/
const DECLARATION = /\.d\.m?ts$/

/** A module of the build and the namespace that it defines. */
export interface NamespaceFile {
  readonly ns: string
  /** Relative to the build, with `/`. */
  readonly file: string
}

/** Whether a file of a build is a module, by its name. */
export const isModule = (name: string): boolean => MODULE.test(name) && !DECLARATION.test(name)

/** The modules of a build outside `node_modules`, of all its files. */
export const sourcesOf = (files: readonly string[]): string[] =>
  files.filter((file) => isModule(file) && !isDependency(file))

const ALMOST_MODULE = /\.(?:cjs|cts|jsx|tsx)$/

/** The files that look like modules and are none, in the places of namespaces. */
export const almostModulesOf = (files: readonly string[]): string[] =>
  files.filter((file) => ALMOST_MODULE.test(file) && isVisible(file) && !isDependency(file))

/** Whether a file belongs to the dependencies of a build. */
export const isDependency = (file: string): boolean => file.split('/').slice(0, -1).includes('node_modules')

const isVisible = (file: string): boolean => file.split('/').every((segment) => !/^[_.]/.test(segment))

/** The namespaces that the modules of a build define. Two files may define the same one; the inspection refuses that build. */
export const namespacesOf = (sources: readonly string[]): NamespaceFile[] =>
  sources.filter(isVisible).map((file) => ({ ns: file.replace(MODULE, '').replaceAll('/', '.'), file }))
