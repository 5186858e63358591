import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'
import { changesOf } from './changesOf.ts'

type Changeable = Pick<EventOf<'ApiKeyChanged'>, 'name' | 'enabled' | 'permissions' | 'expires_at'>
type ApiKey =
  | { readonly status: 'absent' | 'deleted' }
  | ({ readonly status: 'active' } & Required<Changeable>)

export type ApiKeyCommand =
  | ({ readonly type: 'CreateApiKey' } & Omit<EventOf<'ApiKeyCreated'>, 'type'>)
  | { readonly type: 'ChangeApiKey'; readonly api_key_id: string; readonly changes: Changeable }
  | { readonly type: 'DeleteApiKey'; readonly api_key_id: string }

type ApiKeyEvent = EventOf<'ApiKeyCreated' | 'ApiKeyChanged' | 'ApiKeyDeleted'>

/** The rules of an API key. A second creation is a no-op, also after the key was deleted. */
export const apiKey: Decider<ApiKey, ApiKeyCommand, ApiKeyEvent> = {
  initial: () => ({ status: 'absent' }),

  decide(command, key) {
    if (command.type === 'CreateApiKey') {
      const { type: _, ...created } = command
      return key.status === 'absent' ? [{ type: 'ApiKeyCreated', ...created }] : []
    }
    const { type, api_key_id } = command
    if (key.status !== 'active') throw new AppError('not_found', 'No such API key')
    switch (type) {
      case 'ChangeApiKey': {
        const changed = changesOf(key, command.changes)
        return changed ? [{ type: 'ApiKeyChanged', api_key_id, ...changed }] : []
      }
      case 'DeleteApiKey':
        return [{ type: 'ApiKeyDeleted', api_key_id }]
      default:
        return type satisfies never
    }
  },

  evolve(key, { event }: Folded<ApiKeyEvent>) {
    switch (event.type) {
      case 'ApiKeyCreated':
        return {
          status: 'active',
          name: event.name,
          enabled: true,
          permissions: event.permissions,
          expires_at: null,
        }
      case 'ApiKeyChanged': {
        if (key.status !== 'active') return key
        const { type: _, api_key_id: __, ...changed } = event
        return { ...key, ...changed }
      }
      case 'ApiKeyDeleted':
        return { status: 'deleted' }
      default:
        return foreign(event)
    }
  },
}
