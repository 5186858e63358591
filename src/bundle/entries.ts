import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { almostModulesOf, namespacesOf, sourcesOf } from '../sandbox/namespaces.ts'
import { BundleFailed, messageAbout } from './bundle.ts'
import type { Settings } from './settings.ts'

const TEST = /\.(?:test|spec)\.[cm]?[jt]sx?$/
const DECLARATION = /\.d\.cts$/
const ENDING = /\.[cm]?[jt]sx?$/

/** A module that becomes a namespace. */
export interface Entry {
  /** Relative to the folder of the sources, with `/`. */
  readonly file: string
  /** The path of its output without the ending, which decides its namespace. */
  readonly out: string
}

/** The namespaces of a project, sorted. Throws `BundleFailed` if there are none, or if two have the same name. */
export const findEntries = ({ folder, src }: Settings): readonly Entry[] => {
  const files = filesIn(join(folder, src))
  const sources = namespacesOf(sourcesOf(files)).map(({ file }) => file)
  const entries = [...sources, ...almostModulesOf(files)]
    .filter((file) => !TEST.test(file) && !DECLARATION.test(file))
    .sort()
    .map((file) => ({ file, out: file.replace(ENDING, '') }))
  if (entries.length === 0) throw new BundleFailed([noModules(src)])
  const owners = new Map<string, string>()
  for (const { file, out } of entries) {
    const other = owners.get(out)
    if (other !== undefined)
      throw new BundleFailed([
        messageAbout(join(src, file), `${join(src, other)} has the same namespace; rename one of them`),
      ])
    owners.set(out, file)
  }
  return entries
}

const noModules = (src: string) =>
  messageAbout(
    null,
    `expected modules (.ts, .tsx, .mts, .cts, .js, .jsx, .mjs or .cjs) in ${src === '.' ? 'the folder' : src}, outside of names that begin with "_" or "."; found none. svc init creates a first one`,
  )

/** Every file in the places of namespaces, relative to `dir`. Linked folders are not followed, because they may be circles. */
const filesIn = (dir: string, under = ''): string[] =>
  readdirSync(join(dir, under), { withFileTypes: true }).flatMap((entry) => {
    if (/^[_.]/.test(entry.name) || entry.name === 'node_modules') return []
    const path = under === '' ? entry.name : `${under}/${entry.name}`
    if (entry.isDirectory()) return filesIn(dir, path)
    return entry.isFile() || (entry.isSymbolicLink() && isFile(join(dir, path))) ? [path] : []
  })

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true
