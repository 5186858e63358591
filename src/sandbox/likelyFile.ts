import { readdirSync } from 'node:fs'
import { dirname, extname } from 'node:path'
import { nearest } from './nearestName.ts'

/** Names of a folder that are compared. */
const MAX_NAMES = 1000

/** The name of a file of the same folder with another extension or nearly the same name. `code`: the names of modules. */
export const fileLike = (path: string, dir: string, code: RegExp): string | undefined => {
  const folder = dirname(path)
  const wanted = path.slice(folder.length + 1)
  const names = namesIn(folder).filter((name) => code.test(name) || name.endsWith('.json'))
  const withoutExtension = (name: string): string =>
    code.test(name) ? name.slice(0, -extname(name).length) : name
  const stem = withoutExtension(wanted)
  const same = names.filter((name) => name.startsWith(`${wanted}.`) || withoutExtension(name) === stem)
  if (same.length > 0) return same.sort((a, b) => a.length - b.length)[0]
  if (path !== dir) {
    const index = namesIn(path).find((name) => name.startsWith('index.') && code.test(name))
    if (index !== undefined) return `${wanted}/${index}`
  }
  const likely = nearest(stem, names.map(withoutExtension))
  return names.find((name) => withoutExtension(name) === likely)
}

/** The names in a folder; none if it cannot be read. */
export const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder).slice(0, MAX_NAMES)
  } catch {
    return []
  }
}
