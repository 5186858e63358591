import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adviceFor } from '../disk/fullDisk.ts'
import { makeFolder } from '../disk/makeFolder.ts'
import { isMissing } from '../disk/sync.ts'
import { AppError, messageOf, unreadable } from '../errors.ts'
import { withoutBom } from '../text/withoutBom.ts'

/** An environment of a service that `svc login` has stored. */
interface Profile {
  readonly name: string
  readonly url: string
  readonly key: string
}

interface Stored {
  /** The profile that is used where none is named. */
  readonly default: string
  readonly profiles: Readonly<Record<string, { readonly url: string; readonly key: string }>>
}

const fileIn = (dir: string): string => join(dir, 'profiles.json')

/** The named profile, or the default one. Null if none is named and nothing is stored. */
export const readProfile = (dir: string, name: string | null): Profile | null => {
  const stored = readStored(dir)
  if (stored === null && name === null) return null
  const wanted = name ?? stored?.default ?? ''
  const found = Object.hasOwn(stored?.profiles ?? {}, wanted) ? stored?.profiles[wanted] : undefined
  if (found) return { name: wanted, url: found.url, key: found.key }
  const names = Object.keys(stored?.profiles ?? {}).join(', ') || 'none'
  throw new AppError(
    'bad_request',
    `profile: expected one of svc login (${names}), got ${JSON.stringify(wanted)}; create it with svc login URL --profile NAME`,
  )
}

/** Stores a profile, which becomes the default one. Only this user can read the file, because it contains the keys. */
export const writeProfile = (dir: string, { name, url, key }: Profile): void => {
  const profiles = Object.entries(readStored(dir)?.profiles ?? {}).filter(([each]) => each !== name)
  const stored: Stored = { default: name, profiles: Object.fromEntries([...profiles, [name, { url, key }]]) }
  makeFolder(dir, 0o700)
  const part = `${fileIn(dir)}.${process.pid}.part`
  rmSync(part, { force: true })
  try {
    writeFileSync(part, `${JSON.stringify(stored, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(part, fileIn(dir)) // a reader sees all of it or none
  } catch (error) {
    rmSync(part, { force: true })
    throw new AppError(
      'bad_request',
      `profile: cannot write ${fileIn(dir)}: ${messageOf(error)}${adviceFor(error)}`,
      { cause: error },
    )
  }
}

const readStored = (dir: string): Stored | null => {
  const file = fileIn(dir)
  let text: string
  try {
    text = withoutBom(readFileSync(file, 'utf8'))
  } catch (error) {
    if (isMissing(error)) return null
    throw new AppError('bad_request', unreadable(file, error))
  }
  return parsed(text, (reason) => {
    throw new AppError(
      'bad_request',
      `${file}: expected the profiles of svc login, but ${reason}; repair it, or move it away and repeat svc login`,
    )
  })
}

/** The text is in no error, because it contains keys: the one of `JSON.parse` would repeat a part of it. */
const parsed = (text: string, refuse: (reason: string) => never): Stored => {
  let stored: Partial<Stored> | null
  try {
    stored = JSON.parse(text) as typeof stored
  } catch {
    return refuse('it is no JSON')
  }
  const { default: chosen, profiles } = stored ?? {}
  if (typeof chosen !== 'string' || typeof profiles !== 'object' || profiles === null)
    return refuse('it has no default and profiles')
  const [wrong] = Object.entries(profiles).find(([, profile]) => !isStored(profile)) ?? []
  return wrong === undefined
    ? { default: chosen, profiles }
    : refuse(`the profile ${wrong} has no url or no key`)
}

const isStored = (profile: { readonly url: unknown; readonly key: unknown } | null): boolean =>
  typeof profile?.url === 'string' && typeof profile.key === 'string'
