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
  files.filter((file) => isModule(file) && !file.split('/').slice(0, -1).includes('node_modules'))

/** The namespaces that the modules of a build define. Two files may define the same one; the inspection refuses that build. */
export const namespacesOf = (sources: readonly string[]): NamespaceFile[] =>
  sources
    .filter((file) => file.split('/').every((segment) => !/^[_.]/.test(segment)))
    .map((file) => ({ ns: file.replace(MODULE, '').replaceAll('/', '.'), file }))
