/**
 * Node's look-up of modules asks for files that the permission model does not let it read, so the outcome would reveal
 * which files exist on the node.
 */
import fs from 'node:fs'
import nodeModule, { syncBuiltinESMExports } from 'node:module'
import nodePath from 'node:path'
import { fileURLToPath } from 'node:url'

/** Captured before user code can replace them. */
const { isAbsolute, resolve, sep } = nodePath
// oxlint-disable-next-line typescript/unbound-method -- bound to its text at each call
const startsWith = Function.prototype.call.bind(String.prototype.startsWith) as (
  text: string,
  start: string,
) => boolean

type IsVisible = (path: string) => boolean

export const visibleIn =
  (dirs: readonly string[]): IsVisible =>
  (path) => {
    const full = resolve(path)
    for (const dir of dirs) if (full === dir || startsWith(full, dir + sep)) return true
    return false
  }

/** Whether an import names a file by its path, and not one of the visible files. */
export const leadsOut = (specifier: string, parent: string | undefined, isVisible: IsVisible): boolean => {
  if (!/^(?:\.{0,2}\/|\.{1,2}$|file:)/i.test(specifier)) return false
  try {
    const url = new URL(specifier, parent)
    return url.protocol === 'file:' && !isVisible(fileURLToPath(url))
  } catch {
    return false // reported by Node, which cannot look for it
  }
}

export const notFound = (specifier: string): Error =>
  Object.assign(new Error(`Cannot find module '${specifier}'`), { code: 'MODULE_NOT_FOUND' })

/** Restricts the functions of Node that look for files without asking the permission model. */
export const hideOtherFiles = (isVisible: IsVisible): void => {
  const { native } = fs.realpathSync // the other one looks at each segment itself
  fs.realpathSync = Object.assign(native.bind(fs), { native })
  syncBuiltinESMExports()
  const { _findPath, _stat, _resolveFilename, findPackageJSON } = nodeModule as unknown as Lookups
  Object.assign(nodeModule, {
    _findPath: (request: unknown, paths: unknown, ...rest: unknown[]) => {
      if (typeof request !== 'string') return false
      if (isAbsolute(request)) return isVisible(request) && _findPath(request, paths, ...rest)
      if (!Array.isArray(paths)) return false
      const allowed: string[] = []
      for (const path of paths as unknown[])
        if (typeof path === 'string' && isVisible(resolve(path, request))) allowed.push(path)
      return _findPath(request, allowed, ...rest)
    },
    _stat: (path: unknown) => (typeof path === 'string' && isVisible(path) ? _stat(path) : -2),
    _resolveFilename: (request: unknown, ...rest: unknown[]) =>
      hidingDenied(String(request), () => _resolveFilename(request, ...rest)),
    findPackageJSON: (specifier: unknown, base?: unknown) => {
      const [name, parent] = [String(specifier), base === undefined ? undefined : String(base)]
      const from =
        parent === undefined ? undefined : startsWith(parent, 'file:') ? fileURLToPath(parent) : parent
      if ((from !== undefined && !isVisible(from)) || leadsOut(name, parent, isVisible)) throw notFound(name)
      const found = hidingDenied(name, () => findPackageJSON(name, parent))
      return typeof found === 'string' && isVisible(found) ? found : undefined
    },
  })
}

type Lookup = (...args: unknown[]) => unknown

interface Lookups {
  readonly _findPath: Lookup
  readonly _stat: Lookup
  readonly _resolveFilename: Lookup
  readonly findPackageJSON: Lookup
}

/** A file that exists but may not be read looks like one that does not exist. */
const hidingDenied = (name: string, find: () => unknown): unknown => {
  try {
    return find()
  } catch (error) {
    throw isDenied(error) ? notFound(name) : error
  }
}

export const isDenied = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED'
