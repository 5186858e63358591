import { chmod } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { eachOf } from '../disk/eachOf.ts'

/** Files whose rights are set at the same time. */
const AT_A_TIME = 8

/**
 * Lets children with users of their own read an unpacked build, also under a strict umask. They can enter the folders
 * above it, up to the cache, and the one that it moves to, but not list them.
 */
export const openToChildren = async (
  dir: string,
  files: readonly string[],
  cacheDir: string,
): Promise<void> => {
  for (let above = dirname(dir); !relative(cacheDir, above).startsWith('..'); above = dirname(above))
    await chmod(above, 0o711)
  await chmod(join(cacheDir, 'builds'), 0o711) // it may be new, because something has removed the cache
  const folders = new Set([dir])
  for (const file of files) {
    const segments = file.split('/').slice(0, -1)
    for (let n = 1; n <= segments.length; n++) folders.add(join(dir, segments.slice(0, n).join(sep)))
  }
  await eachOf(files, AT_A_TIME, (file) => chmod(join(dir, file), 0o644))
  await eachOf(folders, AT_A_TIME, (folder) => chmod(folder, 0o755))
}
