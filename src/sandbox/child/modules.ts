import { readdirSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isModule, MODULE, type NamespaceFile, namespacesOf } from '../namespaces.ts'
import { hideOtherFiles, isDenied, leadsOut, notFound, visibleIn } from './hiddenFiles.ts'
import { importHint } from './likelyNames.ts'
import { framesOf } from './stacks.ts'

/** Every namespace of a build. */
export const namespacesIn = (dir: string): NamespaceFile[] => namespacesOf(sourcesIn(dir))

/** Every module of a build outside `node_modules`, relative to it, in a fixed order. */
export const sourcesIn = (dir: string, under = ''): string[] =>
  readdirSync(join(dir, under), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = under ? `${under}/${entry.name}` : entry.name
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourcesIn(dir, path)
      return isModule(entry.name) ? [path] : []
    })

interface ImportSite {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** The place of each import that failed to resolve, for error messages. */
const failedImports = new WeakMap<Error, ImportSite>()

const loaded: string[] = []

/** The modules of the build that were loaded so far, relative to the build. */
export const loadedFiles = (): readonly string[] => loaded

const imports = new Map<string, Set<string>>()

/** The modules of the build that a module imports, outside of `node_modules`. */
export const importsOf = (file: string): ReadonlySet<string> => imports.get(file) ?? new Set()

const addImport = (dir: string, parent: string, url: string): void => {
  const [from, to] = [parent, url].map((each) => relative(dir, fileURLToPath(each))) as [string, string]
  if (from.includes('node_modules/') || to.includes('node_modules/')) return
  imports.set(from, (imports.get(from) ?? new Set()).add(to))
}

export const importSite = (error: Error): ImportSite | undefined => failedImports.get(error)

/**
 * Resolves `svc` to the SDK and loads the build's modules as ES modules, regardless of its package.json.
 * A `.ts` file is loaded unchanged, because its types were stripped when the build was unpacked.
 */
export const installHooks = (dir: string, runtimeDir: string, sdkUrl: string): void => {
  const own = pathToFileURL(dir + sep).href
  const isVisible = visibleIn([dir, runtimeDir])
  hideOtherFiles(isVisible)
  registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === 'svc') return { url: sdkUrl, format: 'module', shortCircuit: true }
      try {
        const base = context.parentURL ?? own // code of `vm` has none, and one of its choice
        if (leadsOut(base, undefined, isVisible) || leadsOut(specifier, base, isVisible))
          throw notFound(specifier)
        const resolved = next(specifier, context)
        if (leadsOut(resolved.url, undefined, isVisible)) throw notFound(specifier)
        const parent = context.parentURL
        if (parent?.startsWith(own) && resolved.url.startsWith(own)) addImport(dir, parent, resolved.url)
        return resolved
      } catch (thrown) {
        const error = isDenied(thrown) ? notFound(specifier) : thrown
        if (error instanceof Error && context.parentURL?.startsWith(own)) {
          const file = relative(dir, fileURLToPath(context.parentURL))
          failedImports.set(error, siteOf(specifier, file, dir))
          error.message = `Cannot find module '${specifier}'${importHint(specifier, file, { dir })}`
          error.stack = `${error.name}: ${error.message}${framesOf(String(error.stack))}`
        }
        throw error
      }
    },
    load: (url, context, next) => {
      if (!url.startsWith(own) || url.includes('/node_modules/')) return next(url, context)
      const path = fileURLToPath(url)
      if (!MODULE.test(path)) return next(url, context)
      loaded.push(relative(dir, path))
      return { format: 'module', source: readFileSync(path, 'utf8'), shortCircuit: true }
    },
  })
}

/** The first place that quotes the specifier. */
const siteOf = (specifier: string, file: string, dir: string): ImportSite => {
  try {
    const lines = readFileSync(join(dir, file), 'utf8').split('\n')
    for (const [index, text] of lines.entries()) {
      const at = Math.max(text.indexOf(`'${specifier}'`), text.indexOf(`"${specifier}"`))
      if (at >= 0) return { file, line: index + 1, column: at + 1 }
    }
  } catch {}
  return { file, line: 1, column: 1 }
}
