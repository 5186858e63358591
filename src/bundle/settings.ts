import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { AppError } from '../errors.ts'
import { nearest } from '../sandbox/nearestName.ts'
import { isObject, type Package, readPackage } from './packageJson.ts'

/** `svc` of package.json, with its defaults. */
export interface Settings {
  /** The folder of the project, absolute. */
  readonly folder: string
  /** The name of the project in the service. */
  readonly project: string
  /** The folder of the modules, relative to `folder`. */
  readonly src: string
  /** Patterns of further files of the build, relative to `src`. */
  readonly assets: readonly string[]
  /** The file with values for context variables, relative to `folder`; null if there is none. */
  readonly secrets: string | null
}

const KEYS = ['project', 'src', 'assets', 'secrets'] as const
const PROJECT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
const MAX_NAME = 63
const PROJECT_RULE =
  'a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter or digit'
const SECRETS = '.env.svc'

/** Reads the settings of a project. Throws `bad_request` that names the wrong field. */
export const readSettings = (folder: string): Settings => {
  const given = resolve(folder)
  if (!statSync(given, { throwIfNoEntry: false })?.isDirectory())
    throw new AppError('bad_request', `FOLDER: expected a folder, got ${folder}`)
  const dir = realpathSync(given) // the bundler names modules by their real paths
  const { name, svc = {} } = readPackage(dir)?.fields ?? {}
  const fields = checked(svc)
  return {
    folder: dir,
    project: projectOf(fields['project'], name, given),
    src: srcOf(fields['src'], dir),
    assets: assetsOf(fields['assets']),
    secrets: secretsOf(fields['secrets'], dir),
  }
}

const checked = (svc: unknown): Package['fields'] => {
  if (!isObject(svc)) throw wrong('svc', `an object with ${KEYS.join(', ')}`, svc)
  const unknown = Object.keys(svc).find((key) => !KEYS.some((known) => known === key))
  if (unknown === undefined) return svc
  const near = nearest(unknown, KEYS)
  const hint = near === undefined ? `expected ${KEYS.join(', ')}` : `did you mean ${near}?`
  throw new AppError('bad_request', `package.json: svc.${unknown} is unknown: ${hint}`)
}

/** Checks the name of a project. Throws `bad_request`. */
export const projectName = (text: string): string => {
  if (PROJECT.test(text)) return text
  throw new AppError('bad_request', `expected ${PROJECT_RULE}; got ${JSON.stringify(text)}`)
}

const projectOf = (given: unknown, name: unknown, dir: string): string => {
  if (given !== undefined) {
    if (typeof given === 'string' && PROJECT.test(given)) return given
    throw wrong('svc.project', PROJECT_RULE, given)
  }
  const from = typeof name === 'string' ? name.replace(/^@[^/]*\//, '') : basename(dir)
  const project = PROJECT.test(from) ? from : plainName(from)
  if (project !== '') return project
  throw wrong('svc.project', `${PROJECT_RULE}, because ${JSON.stringify(from)} gives none`, given)
}

/** The name that a project or a package can have from a text, such as a folder; empty without a Latin letter or digit. */
export const plainName = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '') // the accents
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, MAX_NAME)
    .replace(/-$/, '')

const srcOf = (given: unknown, dir: string): string => {
  if (given === undefined) return isFolder(join(dir, 'src')) ? 'src' : '.'
  const src = typeof given === 'string' ? given.replace(/^\.\/(?=.)|\/+$/g, '') : ''
  if (!isInside(src) || !isFolder(join(dir, src))) throw wrong('svc.src', 'a folder of the project', given)
  return src
}

const assetsOf = (given: unknown = []): readonly string[] => {
  const patterns: readonly unknown[] = Array.isArray(given) ? given : [given]
  return patterns.map((pattern) => {
    if (typeof pattern === 'string' && isInside(pattern)) return pattern
    throw wrong('svc.assets', 'a list of patterns inside of svc.src, such as "templates/**"', pattern)
  })
}

const secretsOf = (given: unknown, dir: string): string | null => {
  if (given === undefined) return existsSync(join(dir, SECRETS)) ? SECRETS : null
  if (typeof given !== 'string' || !isInside(given) || !existsSync(join(dir, given)))
    throw wrong('svc.secrets', 'a file of the project', given)
  return given
}

/** A path that does not leave its folder. */
const isInside = (path: string): boolean =>
  path !== '' && !/^[/\\]|^[A-Za-z]:/.test(path) && !path.split(/[/\\]/).includes('..')

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const wrong = (field: string, expected: string, got: unknown): AppError =>
  new AppError(
    'bad_request',
    `package.json: ${field}: expected ${expected}; got ${JSON.stringify(got) ?? 'nothing'}`,
  )
