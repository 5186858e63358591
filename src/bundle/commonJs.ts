import { readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { init, parse } from 'cjs-module-lexer'
import type { Plugin } from 'esbuild'

const ENDING = /\.c[jt]s$/
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

/** Marks an entry, so that an import of the same file gets the module itself. */
const ENTRY = 'svc-entry:'

/** The name by which the bundler finds an entry. */
export const entryPath = (path: string): string => (ENDING.test(path) ? ENTRY + path : path)

/** Exports of CommonJS modules are values of an object. A namespace needs each of them as an export of a module. */
export const commonJsPlugin: Plugin = {
  name: 'commonjs-entries',
  setup(build) {
    build.onResolve({ filter: new RegExp(`^${ENTRY}`) }, ({ path }) => ({
      path: path.slice(ENTRY.length),
      namespace: 'commonjs-entry',
    }))
    build.onLoad({ filter: /./, namespace: 'commonjs-entry' }, async ({ path }) => {
      const loader = path.endsWith('ts') ? 'ts' : 'js'
      await init()
      const { code } = await build.esbuild.transform(readFileSync(path, 'utf8'), {
        loader,
        format: 'cjs',
        logLevel: 'silent',
      })
      const names = parse(code).exports.filter((name) => IDENTIFIER.test(name) && name !== '__esModule')
      const values = names.map(
        (name, index) => `const svc${index} = exported.${name}; export { svc${index} as ${name} };`,
      )
      return {
        contents: [`import exported from ${JSON.stringify(`./${basename(path)}`)};`, ...values].join('\n'),
        resolveDir: dirname(path),
        watchFiles: [path],
      }
    })
  },
}
