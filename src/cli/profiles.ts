import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adviceFor } from '../disk/fullDisk.ts'
import { makeFolder } from '../disk/makeFolder.ts'
import { isMissing } from '../disk/sync.ts'
import { AppError, messageOf } from '../errors.ts'

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
  try {
    const stored = JSON.parse(readFileSync(file, 'utf8')) as Stored
    if (typeof stored.default === 'string' && Object.values(stored.profiles).every(isStored)) return stored
    throw new Error('a profile has no url or no key')
  } catch (error) {
    if (isMissing(error)) return null
    throw new AppError(
      'bad_request',
      `${file}: expected the profiles of svc login (${messageOf(error)}); remove it, then repeat svc login`,
    )
  }
}

const isStored = ({ url, key }: { readonly url: unknown; readonly key: unknown }): boolean =>
  typeof url === 'string' && typeof key === 'string'
