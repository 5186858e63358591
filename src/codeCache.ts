import { accessSync, constants, mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

const dir = fileURLToPath(new URL('../node_modules/.cache/svc', import.meta.url))

/**
 * Has modules kept compiled and free of types beside the packages, which `npm ci` fills (`prepare`): a start
 * then needs neither a parser nor a type stripper, which is half its time and a fifth of its memory.
 * Returns the folder, or null where it cannot be written.
 */
export const openCodeCache = (): string | null => {
  try {
    mkdirSync(dir, { recursive: true })
    accessSync(dir, constants.W_OK)
  } catch {
    return null
  }
  enableCompileCache(`${dir}/compiled`)
  return dir
}
