import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** The credentials issued under an API key: the open sessions and all service keys. Times are ms since 1970. */
interface Issued {
  /** By id, the time at which each expires. */
  readonly sessions: Map<string, number>
  readonly serviceKeys: Map<string, { readonly expires: number; revoked: boolean }>
}

type IssuedEvent = EventOf<
  'SessionCreated' | 'SessionsEnded' | 'ServiceKeyCreated' | 'ServiceKeysRevoked' | 'ServiceKeyUsed'
>

/** `now`: ISO 8601 UTC. */
export type IssuedCommand = { readonly api_key_id: string; readonly now: string } & (
  | {
      readonly type: 'CreateSession'
      readonly session: Omit<EventOf<'SessionCreated'>, 'type' | 'api_key_id'>
    }
  | { readonly type: 'RevokeSession'; readonly session_id: string }
  | { readonly type: 'RevokeSessions' }
  | {
      readonly type: 'CreateServiceKey'
      readonly key: Omit<EventOf<'ServiceKeyCreated'>, 'type' | 'api_key_id'>
      /** The number of valid service keys that the plan allows. */
      readonly most?: number
    }
  | { readonly type: 'RevokeServiceKey'; readonly service_key_id: string }
  | { readonly type: 'RevokeServiceKeys' }
)

/** SPEC.md, Limits: active sessions per API key. */
const MAX_SESSIONS = 1000

/** The most ids in one fact: 40 KB. */
const IDS_PER_FACT = 1000

/** The rules of the credentials issued under one API key. One stream orders the commands, so the count is exact. */
export const issued: Decider<Issued, IssuedCommand, IssuedEvent> = {
  initial: () => ({ sessions: new Map(), serviceKeys: new Map() }),

  decide(command, { sessions, serviceKeys }) {
    const { api_key_id } = command
    const now = Date.parse(command.now)
    const ended = (reason: 'revoked' | 'expired', ids: readonly string[]): IssuedEvent[] =>
      inParts(ids).map((session_ids) => ({ type: 'SessionsEnded', api_key_id, session_ids, reason }))
    switch (command.type) {
      case 'CreateSession': {
        const expired = [...sessions].filter(([, expires]) => expires <= now).map(([id]) => id)
        if (sessions.size - expired.length >= MAX_SESSIONS) {
          throw new AppError('session_limit_exceeded', `The API key has ${MAX_SESSIONS} active sessions`)
        }
        return [...ended('expired', expired), { type: 'SessionCreated', api_key_id, ...command.session }]
      }
      case 'RevokeSession': {
        // Also one that has expired by the clock of this node: by that of another, it may be valid.
        const { session_id } = command
        if (!sessions.has(session_id)) throw new AppError('not_found', `No session ${session_id}`)
        return ended('revoked', [session_id])
      }
      case 'RevokeSessions':
        return ended('revoked', [...sessions.keys()])
      case 'CreateServiceKey': {
        const { key, most = Infinity } = command
        if (serviceKeys.size >= most && activeIn(serviceKeys, now).length >= most)
          throw new AppError(
            'quota_exceeded',
            `The plan allows ${most} valid service keys per API key; revoke one first, or create it with another API key`,
          )
        return [{ type: 'ServiceKeyCreated', api_key_id, ...key }]
      }
      case 'RevokeServiceKey': {
        const { service_key_id } = command
        const key = serviceKeys.get(service_key_id)
        if (!key) throw new AppError('not_found', `No service key ${service_key_id}`)
        if (key.revoked) return []
        return [
          { type: 'ServiceKeysRevoked', api_key_id, service_key_ids: [service_key_id], at: command.now },
        ]
      }
      case 'RevokeServiceKeys': {
        const left = [...serviceKeys].filter(([, { revoked }]) => !revoked).map(([id]) => id)
        return inParts(left).map((service_key_ids) => ({
          type: 'ServiceKeysRevoked',
          api_key_id,
          service_key_ids,
          at: command.now,
        }))
      }
      default:
        return command satisfies never
    }
  },

  sizeOf: ({ sessions, serviceKeys }) => sessions.size + serviceKeys.size,

  evolve(issued, { event }: Folded<IssuedEvent>) {
    const { sessions, serviceKeys } = issued
    switch (event.type) {
      case 'SessionCreated':
        sessions.set(event.session_id, Date.parse(event.expires_at))
        break
      case 'SessionsEnded':
        for (const id of event.session_ids) sessions.delete(id)
        break
      case 'ServiceKeyCreated': {
        const expires = event.expires_at === null ? Infinity : Date.parse(event.expires_at)
        serviceKeys.set(event.service_key_id, { expires, revoked: false })
        break
      }
      case 'ServiceKeysRevoked':
        for (const id of event.service_key_ids) {
          const key = serviceKeys.get(id)
          if (key) key.revoked = true
        }
        break
      case 'ServiceKeyUsed': // version 0.1.0 recorded uses here
        break
      default:
        foreign(event)
    }
    return issued
  },
}

const activeIn = (serviceKeys: Issued['serviceKeys'], now: number): string[] =>
  [...serviceKeys].filter(([, { revoked, expires }]) => !revoked && expires > now).map(([id]) => id)

const inParts = (ids: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(ids.length / IDS_PER_FACT) }, (_, part) =>
    ids.slice(part * IDS_PER_FACT, (part + 1) * IDS_PER_FACT),
  )
