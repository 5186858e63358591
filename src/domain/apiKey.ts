import { isDeepStrictEqual } from 'node:util'
import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

type Changeable = Pick<EventOf<'ApiKeyChanged'>, 'name' | 'enabled' | 'permissions'>
type ApiKey =
  | { readonly status: 'absent' | 'deleted' }
  | ({ readonly status: 'active' } & Required<Changeable>)

export type ApiKeyCommand =
  | { readonly type: 'ChangeApiKey'; readonly api_key_id: string; readonly changes: Changeable }
  | { readonly type: 'DeleteApiKey'; readonly api_key_id: string }

/** The rules of an API key after it was created. */
export const apiKey: Decider<ApiKey, ApiKeyCommand, EventOf<'ApiKeyChanged' | 'ApiKeyDeleted'>> = {
  initial: () => ({ status: 'absent' }),

  decide(command, key) {
    const { type, api_key_id } = command
    if (key.status !== 'active') throw new AppError('not_found', 'No such API key')
    switch (type) {
      case 'ChangeApiKey': {
        const changed = Object.fromEntries(
          Object.entries(command.changes).filter(
            ([field, value]) => !isDeepStrictEqual(key[field as keyof Changeable], value),
          ),
        ) as Changeable
        return Object.keys(changed).length > 0 ? [{ type: 'ApiKeyChanged', api_key_id, ...changed }] : []
      }
      case 'DeleteApiKey':
        return [{ type: 'ApiKeyDeleted', api_key_id }]
      default:
        return type satisfies never
    }
  },

  evolve(key, { event }) {
    switch (event.type) {
      case 'ApiKeyCreated':
        return { status: 'active', name: event.name, enabled: true, permissions: event.permissions }
      case 'ApiKeyChanged': {
        if (key.status !== 'active') return key
        const { type: _, api_key_id: __, ...changed } = event
        return { ...key, ...changed }
      }
      case 'ApiKeyDeleted':
        return { status: 'deleted' }
      default:
        return key
    }
  },
}
