import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { BuildContext, BuildOptions, BuildResult, Metafile, Plugin } from 'esbuild'
import { type Bundle, BundleFailed, type BundleMessage, messageAbout } from './bundle.ts'
import { readAssets } from './assets.ts'
import { commonJsPlugin, entryPath } from './commonJs.ts'
import { type Entry, findEntries } from './entries.ts'
import { messageIn, messagesOf } from './esbuildMessages.ts'
import { importMetaPlugin } from './importMeta.ts'
import { missingAssets } from './missingAssets.ts'
import { nativeAddonsIn, nativeAddonsPlugin } from './nativeAddons.ts'
import { openOutputs } from './outputs.ts'
import type { Settings } from './settings.ts'
import { packFile, zipOf } from './zip.ts'

/** Makes the build of a project again and again. */
export interface Bundler {
  /** Rejects with `BundleFailed`; a later call may succeed. Modules that were added or removed are found. */
  rebuild(): Promise<Bundle>
  /** The files of the project that decide the build, absolute. Dependencies are not among them. */
  watched(): readonly string[]
  close(): Promise<void>
}

/** Code that several namespaces share; the name keeps it from being a namespace itself. */
const CHUNKS = '_chunks'
/** CommonJS dependencies call `require` for the modules of Node. */
const REQUIRE =
  "import { createRequire as svcCreateRequire } from 'node:module'; const require = svcCreateRequire(import.meta.url);"

/** The runtime provides `svc`. Of its subpaths, only `svc/client` is a dependency: the others belong to tests and tools. */
const sdkPlugin: Plugin = {
  name: 'sdk',
  setup(build) {
    build.onResolve({ filter: /^svc$/ }, () => ({ path: 'svc', external: true }))
    build.onResolve({ filter: /^svc\// }, ({ path }) => (path === 'svc/client' ? null : refusalOf(path)))
  },
}

const refusalOf = (path: string) => ({
  errors: [
    { text: `Functions cannot import "${path}": they import "svc", and "svc/client" to call a service` },
  ],
})

type Options = BuildOptions & { readonly write: false; readonly metafile: true }

const optionsOf = ({ folder, src }: Settings, entries: readonly Entry[]): Options => {
  const dir = join(folder, src)
  return {
    absWorkingDir: folder,
    entryPoints: entries.map(({ file, out }) => ({ in: entryPath(join(dir, file)), out })),
    outdir: folder, // never written; sources in maps are therefore relative to the project
    allowOverwrite: true,
    bundle: true,
    splitting: true,
    chunkNames: `${CHUNKS}/[name]-[hash]`,
    assetNames: `${CHUNKS}/[name]-[hash]`,
    format: 'esm',
    platform: 'node',
    target: 'node26',
    charset: 'utf8',
    sourcemap: 'linked',
    define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
    banner: { js: REQUIRE },
    plugins: [sdkPlugin, nativeAddonsPlugin, commonJsPlugin, importMetaPlugin(dir)],
    write: false,
    metafile: true,
    logLevel: 'silent',
  }
}

/** Bundlers that are open. The process of esbuild ends with the last one. */
let open = 0

/** Opens the bundler of a project. It has a process of its own until it is closed. */
export const openBundler = async (settings: Settings): Promise<Bundler> => {
  const esbuild = await import('esbuild')
  const { folder, src } = settings
  const filesOf = openOutputs(folder)
  let context: BuildContext<Options> | null = null
  let bundled = ''
  let watched: readonly string[] = []
  open++

  const contextFor = async (entries: readonly Entry[]): Promise<BuildContext<Options>> => {
    const key = entries.map(({ file }) => file).join('\n')
    if (context && bundled === key) return context
    await context?.dispose()
    context = null
    context = await esbuild.context(optionsOf(settings, entries))
    bundled = key
    return context
  }

  return {
    async rebuild() {
      const entries = findEntries(settings)
      const result = await resultOf(await contextFor(entries), folder)
      const { inputs } = result.metafile
      const own = Object.keys(inputs).filter((path) => !path.includes('node_modules/') && !path.includes(':'))
      const errors = [
        ...nativeAddonsIn(folder, result.metafile),
        ...commonJsNames(result.metafile, settings, entries),
      ]
      if (errors.length > 0) throw new BundleFailed(errors)
      const assets = readAssets(settings)
      const files = [...filesOf(result.outputFiles)]
      for (const [path, content] of assets) files.push(packFile(path, content))
      const settingsFiles = ['package.json', 'tsconfig.json']
        .map((name) => join(folder, name))
        .filter((path) => existsSync(path))
      watched = [
        ...own.map((path) => resolve(folder, path)),
        ...[...assets.keys()].map((path) => join(folder, src, path)),
        ...settingsFiles,
      ]
      const zip = zipOf(files)
      return {
        zip,
        sha256: createHash('sha256').update(zip).digest('hex'),
        modules: entries.map(({ file }) => join(src, file)),
        inputs: sizesOf(
          result.metafile,
          [...assets].map(([path, { length }]) => ({ path: join(src, path), bytes: length })),
        ),
        warnings: [
          ...result.warnings.map((warning) => messageIn(warning, folder)),
          ...missingAssets(settings, { sources: own, assets: new Set(assets.keys()) }),
        ],
      }
    },
    watched: () => watched,
    async close() {
      await context?.dispose()
      context = null
      if (--open === 0) await esbuild.stop()
    },
  }
}

const resultOf = async (context: BuildContext<Options>, folder: string): Promise<BuildResult<Options>> => {
  try {
    return await context.rebuild()
  } catch (error) {
    const messages = messagesOf(error, folder)
    throw messages ? new BundleFailed(messages) : error
  }
}

/** A namespace needs named exports, which only a file that is certainly CommonJS is converted to. */
const commonJsNames = (
  { inputs }: Metafile,
  { src }: Settings,
  entries: readonly Entry[],
): readonly BundleMessage[] =>
  entries
    .map(({ file }) => join(src, file))
    .filter((path) => !/\.c[jt]s$/.test(path) && inputs[path]?.format === 'cjs')
    .map((path) => messageAbout(path, 'is a CommonJS module: use export, or rename it to .cjs'))

const sizesOf = ({ outputs }: Metafile, assets: Bundle['inputs']): Bundle['inputs'] => {
  const bytesOf = new Map<string, number>()
  for (const { inputs } of Object.values(outputs))
    for (const [path, { bytesInOutput }] of Object.entries(inputs))
      bytesOf.set(path, (bytesOf.get(path) ?? 0) + bytesInOutput)
  return [...[...bytesOf].map(([path, bytes]) => ({ path, bytes })), ...assets].sort(
    (a, b) => b.bytes - a.bytes,
  )
}
