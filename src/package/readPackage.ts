import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AppError } from '../errors.ts'
import { type ArchivedFile, archiveOf } from './archive.ts'

/** The directory of this package: the checkout, or `node_modules/svc` of another project. */
export const packageDir = fileURLToPath(new URL('../../', import.meta.url))

/** npm adds these to `files` of package.json. */
const ALWAYS = ['package.json', 'README.md', 'LICENSE']

/**
 * Reads the files of this package and archives them as `npm pack` does. Rejects with `unavailable` in a checkout whose
 * sources are newer than the JavaScript that was made of them.
 */
export const readPackage = async (dir = packageDir): Promise<Buffer> => {
  await demandCurrent(dir)
  const { files } = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as {
    readonly files: readonly string[]
  }
  const folders = await Promise.all(files.map((folder) => filesIn(join(dir, folder))))
  const paths = [...ALWAYS, ...folders.flat().map((path) => relative(dir, path))].sort()
  return archiveOf(await Promise.all(paths.map((path) => archived(dir, path))))
}

/** A checkout has `src`, an installed package has not. */
const demandCurrent = async (dir: string): Promise<void> => {
  const sources = await filesIn(join(dir, 'src')).catch(() => [])
  if (sources.length === 0) return
  const built = await stat(join(dir, 'dist/sdk/index.d.ts')).catch(() => null)
  const times = await Promise.all(sources.map(async (path) => (await stat(path)).mtimeMs))
  if (built && built.mtimeMs >= Math.max(...times)) return
  const reason = built ? 'is older than the sources of this checkout' : 'is not built'
  throw new AppError('unavailable', `The package ${reason}; run npm run prepare where the service runs`)
}

const filesIn = async (dir: string): Promise<string[]> => {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

const archived = async (dir: string, path: string): Promise<ArchivedFile> => ({
  path: `package/${path.split(sep).join('/')}`,
  content: await readFile(join(dir, path)),
  isExecutable: path.startsWith('bin'),
})
