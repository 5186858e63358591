import type { Immutable } from '../../src/domain/immutable.ts'
import type { StreamCommand, StreamState } from '../../src/domain/stream.ts'
import { AppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { openWatchedStore } from './watchedStore.ts'

export const now = '2026-05-01T10:00:00.000Z'
export const cause = { env_id: 'env', correlation_id: 'c' }
export const publish = (create = false, event_id = newId(), env_id = 'env'): StreamCommand => ({
  type: 'PublishEvent',
  stream_id: 's',
  env_id,
  event_id,
  event_type: 'x',
  data: { value: 1 },
  source: 'api',
  create,
  now,
})
export const dispatchOf = (event_id: string): StreamCommand => ({
  type: 'DispatchEvent',
  stream_id: 's',
  event_id,
  plans: [],
  worker_id: 'w',
  now,
})
export const reserve = (holder: string) =>
  ({ type: 'ReserveName', name: 'shop', by: { holder }, taken: 'project_exists' }) as const

export const typesIn = async (store: EventStore, at: string) =>
  (await Array.fromAsync(store.read(at))).map(({ event }) => event.type)
export const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'fulfilled',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )

export type Context = ReturnType<typeof openWatchedStore> & { at: string }
export const opening = (context: Context) =>
  Object.assign(context, openWatchedStore(), { at: `stream-${newId()}` })

/** Selects a part of the state, as a reader does. */
export const seen = ({ undispatched }: Immutable<StreamState>, revision: number) => ({
  revision,
  waiting: undispatched.size,
})
