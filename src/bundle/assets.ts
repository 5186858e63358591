import { globSync, readFileSync, statSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { AppError } from '../errors.ts'
import { namespacesOf, sourcesOf } from '../sandbox/namespaces.ts'
import type { Settings } from './settings.ts'

/** Reads the files that functions read at run time. They keep their paths. Throws `bad_request`. */
export const readAssets = ({ folder, src, assets, secrets }: Settings): ReadonlyMap<string, Uint8Array> => {
  const dir = join(folder, src)
  const contents = new Map<string, Uint8Array>()
  for (const pattern of assets) {
    const found = globSync(pattern, { cwd: dir }).filter((path) => statSync(join(dir, path)).isFile())
    if (found.length === 0)
      throw wrong(`no file in ${src} matches ${JSON.stringify(pattern)}; patterns are relative to ${src}`)
    for (const path of found) {
      const name = posix.normalize(path.replaceAll(sep, '/'))
      if (secrets !== null && join(dir, path) === join(folder, secrets))
        throw wrong(`${JSON.stringify(pattern)} matches ${secrets}, whose secrets have no place in a build`)
      if (namespacesOf(sourcesOf([name])).length > 0)
        throw wrong(`${JSON.stringify(pattern)} matches the module ${name}; match other files only`)
      contents.set(name, readFileSync(join(dir, path)))
    }
  }
  return contents
}

const wrong = (what: string): AppError => new AppError('bad_request', `package.json: svc.assets: ${what}`)
