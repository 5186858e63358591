/**
 * Code that several modules share moves into chunks, where `import.meta.url` would be the URL of the chunk. It is therefore
 * replaced by a function that returns the URL which the module has in a plain zip. Each replacement has the length of
 * the original, so that the columns of errors are right.
 */
import { readFileSync } from 'node:fs'
import { relative, sep } from 'node:path'
import type { Loader, Plugin } from 'esbuild'

const USED = /\bimport\.meta\.(url|dirname|filename)\b/g
const REPLACED = /\bsvc_meta_(url|dirname|filename)_\(\)/g
const LOADERS: Readonly<Record<string, Loader>> = {
  ts: 'ts',
  mts: 'ts',
  tsx: 'tsx',
  js: 'js',
  mjs: 'js',
  jsx: 'jsx',
}

/** Stands for the way from an output to the root of the build, which is unknown until the outputs are. */
const ROOT = `svc-root-${'-'.repeat(100)}`

/** Gives the modules in `dir` their own `import.meta`, wherever their code moves. */
export const importMetaPlugin = (dir: string): Plugin => ({
  name: 'import-meta',
  setup(build) {
    const start = (dir + sep).replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
    build.onLoad({ filter: new RegExp(`^${start}.*\\.(?:m?[jt]s|[jt]sx)$`) }, ({ path }) => {
      if (path.slice(dir.length).includes(`${sep}node_modules${sep}`)) return null
      const source = readFileSync(path, 'utf8')
      const contents = source.replace(USED, 'svc_meta_$1_()')
      const loader = LOADERS[path.slice(path.lastIndexOf('.') + 1)]
      if (contents === source || loader === undefined) return null
      const name = relative(dir, path).split(sep).map(encodeURIComponent).join('/')
      return { contents: `${contents}\n${functionsOf(name)}`, loader }
    })
  },
})

const functionsOf = (name: string): string =>
  [
    `import { fileURLToPath as svc_path_ } from 'node:url'`,
    `function svc_meta_url_() { return new URL("${name}", new URL("${ROOT}", import.meta.url)).href }`,
    `function svc_meta_filename_() { return svc_path_(svc_meta_url_()) }`,
    `function svc_meta_dirname_() { return svc_path_(new URL('.', svc_meta_url_())).slice(0, -1) }`,
  ].join('; ')

/** Completes an output of the bundler at its final path. */
export const withBuildRoot = (path: string, content: Uint8Array): Uint8Array => {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  if (!bytes.includes(ROOT)) return content
  const up = '../'.repeat(path.split('/').length - 1) || './'
  // The parser of URLs drops the spaces, which keep the columns of the source map.
  return Buffer.from(bytes.toString().replaceAll(ROOT, up.padStart(ROOT.length)))
}

/** Restores the source as the user wrote it. */
export const withImportMeta = (source: string): string => source.replace(REPLACED, 'import.meta.$1')
