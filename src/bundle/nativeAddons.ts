import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile, Plugin } from 'esbuild'
import { withoutBom } from '../text/withoutBom.ts'
import { type BundleMessage, messageAbout } from './bundle.ts'

/** Packages that find and load native code at run time, where their own imports would fail without a name. */
const LOADERS =
  /^(?:bindings|node-gyp-build|node-gyp-build-optional-packages|(?:@mapbox\/)?node-pre-gyp|prebuild-install)$/
/** Packages such as `@node-rs/argon2-linux-x64-gnu` contain the code of one platform. */
const PLATFORM = /(?:^|[-/])(?:linux|darwin|win32)(?:-|$)/
/** This package: its service has native code, and `svc/client` has none. */
const OWN = /(?:^|\/)node_modules\/svc$/
const PACKAGE = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)/

/** Replaces native code by a module that throws, so that a package can fall back to JavaScript. */
export const nativeAddonsPlugin: Plugin = {
  name: 'native-addons',
  setup(build) {
    const replaced = (path: string) => ({ path, namespace: 'native-addon' })
    build.onResolve({ filter: LOADERS }, ({ path }) => replaced(path))
    build.onResolve({ filter: /\.node$/ }, ({ path }) => replaced(path))
    build.onLoad({ filter: /./, namespace: 'native-addon' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`functions cannot load native code: ${path}`)})`,
      loader: 'js',
    }))
  },
}

interface Manifest {
  readonly gypfile?: unknown
  readonly os?: unknown
  readonly cpu?: unknown
  readonly optionalDependencies?: Readonly<Record<string, unknown>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/**
 * Refuses every native addon by its name, except the optional dependencies of packages that work without them.
 */
export const nativeAddonsIn = (folder: string, { inputs }: Metafile): readonly BundleMessage[] => {
  const manifests = new Map<string, Manifest>()
  const manifestOf = (root: string): Manifest => {
    const known = manifests.get(root) ?? readManifest(join(folder, root))
    manifests.set(root, known)
    return known
  }
  const native = new Set<string>()
  for (const [path, { imports }] of Object.entries(inputs)) {
    const root = rootOf(path)
    if (root === null || native.has(root) || OWN.test(root)) continue
    const loads = imports.some((imported) => imported.path.startsWith('native-addon:'))
    if (loads || isNative(join(folder, root), manifestOf(root))) native.add(root)
  }
  const refused = new Map<string, BundleMessage>()
  for (const [path, { imports }] of Object.entries(inputs)) {
    const importer = rootOf(path)
    if (importer !== null && native.has(importer)) continue
    for (const imported of imports) {
      const root = imported.path.startsWith('native-addon:') ? imported.path : rootOf(imported.path)
      if (root === null || root === importer || refused.has(root)) continue
      if (!native.has(root) && root !== imported.path) continue
      const name = PACKAGE.exec(root)?.[1] ?? root.slice('native-addon:'.length)
      if (importer === null || !isOptional(name, manifestOf(importer)))
        refused.set(root, refusalOf(name, folder, path, imported.original ?? name))
    }
  }
  return [...refused.values()]
}

const rootOf = (path: string): string | null => PACKAGE.exec(path)?.[0] ?? null

const readManifest = (dir: string): Manifest => {
  try {
    return JSON.parse(withoutBom(readFileSync(join(dir, 'package.json'), 'utf8'))) as Manifest
  } catch {
    return {} // the bundler has reported it if it matters
  }
}

const isNative = (dir: string, { gypfile, optionalDependencies = {} }: Manifest): boolean =>
  gypfile === true ||
  existsSync(join(dir, 'binding.gyp')) ||
  Object.keys(optionalDependencies).some((name) => PLATFORM.test(name))

const isOptional = (name: string, { optionalDependencies, peerDependenciesMeta }: Manifest): boolean =>
  (optionalDependencies !== undefined && Object.hasOwn(optionalDependencies, name)) ||
  peerDependenciesMeta?.[name]?.optional === true

const refusalOf = (name: string, folder: string, file: string, specifier: string): BundleMessage => {
  const text = `${name} is a native addon, which functions cannot load: use a package in JavaScript or WebAssembly`
  const lines = readText(join(folder, file)).split('\n')
  const index = lines.findIndex((line) => line.includes(`'${specifier}'`) || line.includes(`"${specifier}"`))
  const sourceLine = lines[index]
  if (sourceLine === undefined) return messageAbout(file, text)
  return { text, file, line: index + 1, column: sourceLine.indexOf(specifier), sourceLine }
}

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
