import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { BundleFailed } from '../../bundle/bundle.ts'
import type { Settings } from '../../bundle/settings.ts'
import { type Client, ServiceError } from '../../client/index.ts'

/** The changes of a synchronization, by name; values are never shown. */
export interface SecretChanges {
  readonly set: readonly string[]
  readonly removed: readonly string[]
}

/** Marks the variables of the file, because only those are removed with their lines. */
const descriptionOf = (file: string): string => `From ${file}, by svc dev`

/**
 * Keeps the context variables of a project equal to the lines of its file. Variables from elsewhere remain. Values cannot be
 * read back, so the first call writes all of them, and later ones only those that changed.
 */
export const openSecrets = (client: Client, project: string) => {
  let known: ReadonlyMap<string, string> | null = null
  return async ({ folder, secrets: file }: Settings): Promise<SecretChanges> => {
    const wanted = new Map(file === null ? [] : entriesIn(folder, file))
    const before: ReadonlyMap<string, string> = known ?? (await managed(client, project))
    const set = [...wanted].filter(([key, value]) => before.get(key) !== value)
    const removed = [...before.keys()].filter((key) => !wanted.has(key))
    known = null // until everything is written
    for (const [key, value] of set) await put(client, project, { key, value, file: file ?? '' })
    for (const key of removed) await remove(client, project, key)
    known = wanted
    return { set: set.map(([key]) => key).sort(), removed: removed.sort() }
  }
}

const entriesIn = (folder: string, file: string): [string, string][] => {
  const text = readFileSync(join(folder, file), 'utf8')
  const wrong = wrongLines(text).map((line) => ({
    text: 'expected KEY=value, a comment that begins with #, or an empty line',
    file,
    line,
    column: null,
    sourceLine: null, // it may contain a secret
  }))
  if (wrong.length > 0) throw new BundleFailed(wrong)
  return Object.entries(parseEnv(text)).map(([key, value]) => [key, value ?? ''])
}

/** A value in quotes, which may have several lines. */
const QUOTED = /(=[ \t]*)(["'`])([^]*?)\2/g

/** The lines that are neither a variable nor a comment, from 1: `parseEnv` ignores them. */
const wrongLines = (text: string): readonly number[] =>
  text
    .replace(QUOTED, (_, before: string, __: string, value: string) => before + value.replace(/[^\n]/g, ''))
    .split('\n')
    .flatMap((line, index) => (/^\s*(?:$|#|(?:export\s+)?[^\s=#]+\s*=)/.test(line) ? [] : [index + 1]))

/** The variables that an earlier `svc dev` has set. Their values are unknown. */
const managed = async (client: Client, project: string): Promise<Map<string, string>> => {
  const keys = new Map<string, string>()
  for (let offset = 0, total = 1; offset < total; offset += 100) {
    const { data, pagination } = await client.request('GET /v1/projects/{project}/context', {
      path: { project },
      query: { limit: 100, offset },
    })
    for (const { key, description } of data)
      if (/^From .*, by svc dev$/.test(description)) keys.set(key, UNKNOWN)
    total = pagination.total
  }
  return keys
}

/** No value of a file: lines end at this character. */
const UNKNOWN = '\0'

const put = async (
  client: Client,
  project: string,
  { key, value, file }: { readonly key: string; readonly value: string; readonly file: string },
): Promise<void> => {
  const description = descriptionOf(file)
  try {
    await client.request('PUT /v1/projects/{project}/context/{key}', {
      path: { project, key },
      body: { value, description },
    })
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === 'not_found')) throw error
    await client.request('POST /v1/projects/{project}/context', {
      path: { project },
      body: { key, value, description },
    })
  }
}

const remove = async (client: Client, project: string, key: string): Promise<void> => {
  try {
    await client.request('DELETE /v1/projects/{project}/context/{key}', { path: { project, key } })
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === 'not_found')) throw error // another process was first
  }
}
