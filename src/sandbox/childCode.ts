import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeFolderNow } from '../disk/durableNames.ts'
import { syncFolderNow } from '../disk/sync.ts'
import { newId } from '../ids.ts'
import { compiled, toJavaScript } from './toJavaScript.ts'

/** Real paths of the modules that every child runs. */
export interface ChildCode {
  /** The module to start. */
  readonly entry: string
  /** The directory of that module and of everything it imports. */
  readonly dir: string
}

const ENTRY = fileURLToPath(
  import.meta.resolve(import.meta.url.endsWith('.ts') ? './child/entry.ts' : './child/entry.js'),
)

/** The directory of both the sandbox and the SDK. */
const ROOT = dirname(dirname(dirname(ENTRY)))

/** Matches imports of values; `import type` is erased. */
const IMPORT = /^(?:import (?!type )|export |\} from |.*\bimport\()[^'\n]*'(\.{1,2}\/[^'\n]+)'/gm

/**
 * Copies only the child's modules to `<cacheDir>/runtime/<hash>`, so that a child can read nothing else of
 * the service. Types are stripped here once, because stripping costs each child 17 MB and 50 ms.
 */
export const prepareChildCode = (cacheDir: string): ChildCode => {
  const modules = new Map<string, string>()
  collect(ENTRY, modules)
  const hash = createHash('sha256')
    .update(JSON.stringify([...modules]))
    .digest('hex')
    .slice(0, 16)
  const runtime = join(cacheDir, 'runtime')
  mkdirSync(runtime, { recursive: true })
  const dir = join(realpathSync(cacheDir), 'runtime', hash)
  if (!existsSync(dir)) write(modules, dir)
  return { dir, entry: join(dir, compiled(relative(ROOT, ENTRY))) }
}

/** Adds the source text of a module and of all its imports, by path relative to `ROOT`. */
const collect = (path: string, modules: Map<string, string>): void => {
  const name = relative(ROOT, path)
  if (modules.has(name)) return
  const source = readFileSync(path, 'utf8')
  modules.set(name, source)
  for (const [, specifier] of source.matchAll(IMPORT))
    if (specifier) collect(join(dirname(path), specifier), modules)
}

const write = (modules: ReadonlyMap<string, string>, dir: string): void => {
  const temporary = `${dir}.${newId()}`
  for (const [name, source] of modules) {
    const path = join(temporary, compiled(name))
    makeFolderNow(dirname(path))
    writeFileSync(path, toJavaScript(name, source), { flush: true })
    syncFolderNow(dirname(path))
  }
  writeFileSync(join(temporary, 'package.json'), '{"type":"module"}', { flush: true })
  syncFolderNow(temporary) // a power cut must not leave the name without the code
  openToAll(temporary)
  chmodSync(dirname(dir), 0o755)
  try {
    renameSync(temporary, dir)
  } catch (error) {
    rmSync(temporary, { recursive: true })
    if (!existsSync(dir)) throw error // another process may have created it first
  }
}

/** Children may have users of their own. The modes are set explicitly, because the umask may be strict. */
const openToAll = (dir: string): void => {
  chmodSync(dir, 0o755)
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644)
}
