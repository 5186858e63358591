import type { Aggregates } from '../domain/aggregates.ts'
import type { Cause } from '../events/event.ts'
import { AppError, isAppError } from '../errors.ts'
import { streamOf } from '../events/streams.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Keyring } from './keyring.ts'

interface Place {
  readonly env_id: string
  readonly project_id: string
}

interface Deps {
  readonly store: EventStore
  readonly aggregates: Pick<Aggregates, 'contexts'>
  readonly keyring: Keyring
}

/** The value of a context variable as the log may hold it: bound to its project and its key. */
export const sealVariable = (
  keyring: Keyring,
  { env_id, project_id }: Place,
  key: string,
  value: string,
): Promise<string> => keyring.seal(env_id, purposeOf(key), value, project_id)

/** The value as of now, whatever node changed it last: the log itself is asked. Rejects with `not_found`. */
export const variableValue = async (deps: Deps, place: Place, key: string): Promise<string> => {
  const revision = await deps.aggregates.contexts.read(
    streamOf.context(place.project_id),
    ({ variables }) => variables.get(key)?.revision,
  )
  if (revision === undefined) throw new AppError('not_found', `No context variable "${key}"`)
  return open(deps.keyring, place, key, await sealedAt(deps.store, place.project_id, revision))
}

/** Seals every variable of a project with its current data key; resolves with how many were not. */
export const resealVariables = async (
  deps: Deps,
  place: Place,
  { current, cause }: { current: string; cause: Cause },
): Promise<number> => {
  const { store, aggregates, keyring } = deps
  const stream = streamOf.context(place.project_id)
  const variables = await aggregates.contexts.read(stream, ({ variables }) => [...variables])
  let resealed = 0
  for (const [key, { revision }] of variables) {
    const before = await sealedAt(store, place.project_id, revision)
    if (before.startsWith(`2.${current}.`)) continue
    const value = await open(keyring, place, key, before).catch(erasedAsNull)
    if (value === null) continue
    const sealed = await sealVariable(keyring, place, key, value)
    const { events } = await aggregates.contexts.handle(
      stream,
      { type: 'ResealVariable', project_id: place.project_id, key, sealed, revision },
      cause,
    )
    resealed += events.length
  }
  return resealed
}

const sealedAt = async (store: EventStore, project_id: string, revision: number): Promise<string> => {
  for await (const { event } of store.read(streamOf.context(project_id), { from: revision, limit: 1 })) {
    if ('sealed' in event && event.sealed !== undefined) return event.sealed
  }
  throw new AppError('internal_server_error', `Expected a value at revision ${revision} of the context`)
}

const open = (keyring: Keyring, { env_id, project_id }: Place, key: string, sealed: string) =>
  keyring.unseal(env_id, purposeOf(key), sealed, project_id)

/** Of a variable whose key was destroyed there is nothing to seal. */
const erasedAsNull = (error: unknown): null => {
  if (isAppError(error, 'not_found')) return null
  throw error
}

const purposeOf = (key: string): string => `context ${key}`
