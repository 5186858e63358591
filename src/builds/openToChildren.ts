import { chmod } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'

/**
 * Lets children with users of their own read an unpacked build, also under a strict umask. They can enter the folders
 * above it, up to the cache, but not list them.
 */
export const openToChildren = async (
  dir: string,
  files: readonly string[],
  cacheDir: string,
): Promise<void> => {
  for (let above = dirname(dir); !relative(cacheDir, above).startsWith('..'); above = dirname(above))
    await chmod(above, 0o711)
  const folders = new Set([dir])
  for (const file of files) {
    await chmod(join(dir, file), 0o644)
    const segments = file.split('/').slice(0, -1)
    for (let n = 1; n <= segments.length; n++) folders.add(join(dir, segments.slice(0, n).join(sep)))
  }
  for (const folder of folders) await chmod(folder, 0o755)
}
