import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The directory of this package: the checkout, or `node_modules/svc` of another project. */
export const packageDir = fileURLToPath(new URL('../../', import.meta.url))

/** Whether `dist` was made from the present sources. An installed package has no sources. */
export const builtState = async (dir: string): Promise<'current' | 'older' | 'missing'> => {
  const sources = await filesIn(join(dir, 'src')).catch(() => [])
  const built = await stat(join(dir, 'dist/sdk/index.d.ts')).catch(() => null)
  if (!built) return 'missing'
  if (sources.length === 0) return 'current'
  const inputs = [...sources, join(dir, 'package.json')]
  const times = await Promise.all(inputs.map(async (path) => (await stat(path)).mtimeMs))
  return built.mtimeMs >= Math.max(...times) ? 'current' : 'older'
}

/** The paths of all files below a folder. */
export const filesIn = async (dir: string): Promise<string[]> => {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
