import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The directories that a child can read, and the names that their files have for users. */
export interface Places {
  /** Real path of the unpacked build, whose files are shown relative to it. */
  readonly dir: string
  /** Real path of the code of the sandbox and the SDK. */
  readonly runtimeDir: string
  /** Replaces every path of the node in a text: those of the build become relative. */
  readonly hide: (text: string) => string
  /** The path of a file of the build, relative to it; undefined for any other path or URL. */
  readonly fileOf: (pathOrUrl: string) => string | undefined
}

/** The name of the runtime in texts. */
const RUNTIME = 'svc:runtime'

/** A folder nearer to the root is too general to be hidden. `/a/b` has three segments. */
const MIN_SEGMENTS = 3

export const openPlaces = (dir: string, runtimeDir: string): Places => {
  const around = commonFolder(dir, runtimeDir)
  const named: readonly (readonly [path: string, name: string])[] = [
    ...formsOf(dir, ''),
    ...formsOf(runtimeDir, RUNTIME),
    ...(around === undefined ? [] : formsOf(around, '…')),
  ]
  const shortest = [...new Set([around ?? dir, encodeURI(around ?? dir), runtimeDir])]
  return {
    dir,
    runtimeDir,
    hide: (text) => {
      if (!shortest.some((path) => text.includes(path))) return text
      let shown = text
      for (const [path, name] of named)
        shown = shown.replaceAll(`${path}/`, name && `${name}/`).replaceAll(path, name || '.')
      return shown
    },
    fileOf: (pathOrUrl) => {
      try {
        const path = posix.normalize(pathOrUrl.startsWith('file:') ? fileURLToPath(pathOrUrl) : pathOrUrl)
        return path.startsWith(`${dir}/`) ? path.slice(dir.length + 1) : undefined
      } catch {
        return undefined
      }
    },
  }
}

const formsOf = (path: string, name: string): [string, string][] =>
  [...new Set([encodeURI(`file://${path}`), `file://${path}`, path, encodeURI(path)])].map((form) => [
    form,
    name,
  ])

/** The folder of the cache, which contains both. */
const commonFolder = (a: string, b: string): string | undefined => {
  const [left, right] = [a.split('/'), b.split('/')]
  const differ = left.findIndex((segment, index) => segment !== right[index])
  const common = differ < 0 ? left : left.slice(0, differ)
  return common.length >= MIN_SEGMENTS ? common.join('/') : undefined
}

export const isDependency = (file: string): boolean => file.split('/').includes('node_modules')
