import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

export type EnvCommand =
  | ({ readonly type: 'CreateEnv' } & Omit<EventOf<'EnvCreated'>, 'type'>)
  | { readonly type: 'DeleteEnv'; readonly env_id: string }
  /** Nobody uses the environment until the import is recorded, or abandoned. It takes the place of one in progress. */
  | ({ readonly type: 'BeginImport' } & Required<Omit<EventOf<'ImportBegun'>, 'type'>>)
  | { readonly type: 'AbandonImport'; readonly env_id: string; readonly import_id: string }
  | ({ readonly type: 'RecordImport'; readonly import_id: string } & Omit<EventOf<'EnvImported'>, 'type'>)
  | ({ readonly type: 'RecordPurge' } & Omit<EventOf<'EnvPurged'>, 'type'>)
  /** A client uses the name. `most`: the number of names that the plan allows. `now`: ISO 8601 UTC. */
  | {
      readonly type: 'NameConsumer'
      readonly name: string
      readonly most: number
      readonly now: string
    }
  /** Forgets the name if no client used it since. */
  | {
      readonly type: 'ForgetConsumer'
      readonly name: string
      readonly unusedSince: string
      readonly now: string
    }

type EnvEvent = EventOf<
  | 'EnvCreated'
  | 'EnvDeleted'
  | 'ImportBegun'
  | 'ImportAbandoned'
  | 'EnvImported'
  | 'EnvPurged'
  | 'ConsumerNamed'
  | 'ConsumerUsed'
  | 'ConsumerForgotten'
>

/** A name of a consumer that no client used for so many days is forgotten. */
export const UNUSED_DAYS = 30
/** The use of a name is recorded again after this time. */
const USE_RECORDED_EVERY_MS = 86_400_000

interface Env {
  readonly status: 'absent' | 'active' | 'deleted'
  /** Of the request that created it; undefined in facts without one. */
  readonly creation_id?: string | undefined
  /** The import in progress, and whether the environment was empty before; null without one. */
  readonly importing: { readonly import_id: string | undefined; readonly empty: boolean } | null
  /** The number of facts in the file of the newest import; null without one. */
  readonly imported: number | null
  /** Nothing of the deleted environment is left. */
  readonly purged: boolean
  /** The names of the consumers of its stream. */
  readonly consumers: Set<string>
  /** The last use of each name; unknown in logs of version 0.1.0. */
  readonly used: Map<string, string>
}

/**
 * The rules of an environment. A second creation is a no-op, also after the deletion. So are a second deletion and a known
 * name of a consumer.
 */
export const env: Decider<Env, EnvCommand, EnvEvent> = {
  initial: () => ({
    status: 'absent',
    importing: null,
    imported: null,
    purged: false,
    consumers: new Set(),
    used: new Map(),
  }),

  decide(command, { status, importing, imported, purged, consumers, used }) {
    switch (command.type) {
      case 'CreateEnv': {
        const { type: _, ...created } = command
        return status === 'absent' ? [{ type: 'EnvCreated', ...created }] : []
      }
      case 'DeleteEnv':
        if (status === 'absent') throw noEnvironment()
        return status === 'deleted' ? [] : [{ type: 'EnvDeleted', env_id: command.env_id }]
      case 'BeginImport': {
        const { env_id, empty, import_id } = command
        if (status !== 'active') throw noEnvironment()
        if (importing?.import_id === import_id) return []
        return [{ type: 'ImportBegun', env_id, empty: empty || importing?.empty === true, import_id }]
      }
      case 'AbandonImport': // an environment that has only a part of its content is of no use
        return importing?.import_id === command.import_id && !importing.empty
          ? [{ type: 'ImportAbandoned', env_id: command.env_id }]
          : []
      case 'RecordImport': {
        const { type: _, import_id, ...numbers } = command
        if (status !== 'active') throw noEnvironment()
        if (importing && importing.import_id !== import_id) throw overtaken()
        return !importing && imported === numbers.facts ? [] : [{ type: 'EnvImported', ...numbers }] // a repetition adds nothing
      }
      case 'RecordPurge': {
        const { env_id, final } = command
        return status === 'deleted' && !purged ? [{ type: 'EnvPurged', env_id, final }] : []
      }
      case 'NameConsumer': {
        const { name, most, now } = command
        if (status === 'deleted') throw noEnvironment()
        if (consumers.has(name)) {
          const isRecorded = Date.parse(now) < Date.parse(used.get(name) ?? '') + USE_RECORDED_EVERY_MS
          return isRecorded ? [] : [{ type: 'ConsumerUsed', name, at: now }]
        }
        if (consumers.size >= most)
          throw new AppError(
            'quota_exceeded',
            `consumer: the plan allows ${most} names of consumers per environment; use one that exists. A name is ` +
              `forgotten when no client used it for ${UNUSED_DAYS} days`,
          )
        return [{ type: 'ConsumerNamed', name, at: now }]
      }
      case 'ForgetConsumer': {
        const { name, unusedSince, now } = command
        if (!consumers.has(name)) return []
        const used_at = used.get(name)
        if (used_at === undefined) return [{ type: 'ConsumerUsed', name, at: now }] // its days begin now
        return used_at < unusedSince ? [{ type: 'ConsumerForgotten', name }] : []
      }
      default:
        return command satisfies never
    }
  },

  sizeOf: ({ consumers }) => consumers.size,

  evolve(state, { event }: Folded<EnvEvent>) {
    switch (event.type) {
      case 'EnvCreated':
        return { ...state, status: 'active', creation_id: event.creation_id }
      case 'EnvDeleted':
        return { ...state, status: 'deleted', importing: null }
      case 'ImportBegun':
        return { ...state, importing: { import_id: event.import_id, empty: event.empty } }
      case 'ImportAbandoned':
        return { ...state, importing: null }
      case 'EnvImported':
        return { ...state, importing: null, imported: event.facts }
      case 'EnvPurged':
        return { ...state, purged: event.final }
      case 'ConsumerNamed':
      case 'ConsumerUsed': {
        const { name, at } = event
        state.consumers.add(name)
        if (at !== undefined) state.used.set(name, at)
        return state
      }
      case 'ConsumerForgotten': {
        state.consumers.delete(event.name)
        state.used.delete(event.name)
        return state
      }
      default:
        return foreign(event)
    }
  },
}

const noEnvironment = (): AppError => new AppError('not_found', 'No such environment')

/** The error of an import that no longer pauses the environment. */
export const overtaken = (): AppError =>
  new AppError(
    'conflict',
    'A later import of the environment has taken its place, or the environment was deleted',
  )
