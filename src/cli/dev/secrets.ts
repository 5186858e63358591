import { BundleFailed } from '../../bundle/bundle.ts'
import type { Settings } from '../../bundle/settings.ts'
import { type Client, ServiceError } from '../../client/index.ts'
import { type Variable, variablesIn, wrongLine } from './envFile.ts'

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
    const variables: ReadonlyMap<string, Variable> = file === null ? new Map() : variablesIn(folder, file)
    const wanted = new Map([...variables].map(([key, { value }]) => [key, value]))
    const before: ReadonlyMap<string, string> = known ?? (await managed(client, project))
    const set = [...wanted].filter(([key, value]) => before.get(key) !== value)
    const removed = [...before.keys()].filter((key) => !wanted.has(key))
    known = null // until everything is written
    for (const [key, value] of set) {
      const line = variables.get(key)?.line ?? null
      await put(client, project, { key, value, file: file ?? '', line })
    }
    for (const key of removed) await remove(client, project, key)
    known = wanted
    return { set: set.map(([key]) => key).sort(), removed: removed.sort() }
  }
}

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

interface Written {
  readonly key: string
  readonly value: string
  readonly file: string
  readonly line: number | null
}

const put = async (client: Client, project: string, { key, value, file, line }: Written): Promise<void> => {
  const description = descriptionOf(file)
  try {
    await client.request('PUT /v1/projects/{project}/context/{key}', {
      path: { project, key },
      body: { value, description },
    })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    if (error.code === 'bad_request')
      throw new BundleFailed([wrongLine(file, line, `${key}: ${error.message}`)])
    if (error.code !== 'not_found') throw error
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
