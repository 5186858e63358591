import { readFile, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { AppError } from '../errors.ts'
import { type ArchivedFile, archiveOf } from './archive.ts'
import { builtState, filesIn, packageDir } from './built.ts'

/** npm adds these to `files` of package.json. */
const ALWAYS = ['package.json', 'README.md', 'LICENSE']

/**
 * Reads the files of this package and archives them as `npm pack` does. Rejects with `unavailable` in a checkout whose
 * sources are newer than the JavaScript that was made of them.
 */
export const readPackage = async (dir = packageDir): Promise<Buffer> => {
  const state = await builtState(dir)
  if (state !== 'current') {
    const reason = state === 'older' ? 'is older than the sources of this checkout' : 'is not built'
    throw new AppError('unavailable', `The package ${reason}; run npm run prepare where the service runs`)
  }
  const { files } = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as {
    readonly files: readonly string[]
  }
  const found = await Promise.all(files.map((path) => filesAt(join(dir, path))))
  const paths = [...ALWAYS, ...found.flat().map((path) => relative(dir, path))].sort()
  return archiveOf(await Promise.all(paths.map((path) => archived(dir, path))))
}

/** A file, or the files of a folder. */
const filesAt = async (path: string): Promise<string[]> =>
  (await stat(path)).isFile() ? [path] : filesIn(path)

const archived = async (dir: string, path: string): Promise<ArchivedFile> => ({
  path: `package/${path.split(sep).join('/')}`,
  content: await readFile(join(dir, path)),
  isExecutable: path.startsWith('bin'),
})
