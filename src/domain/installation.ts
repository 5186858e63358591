import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** A master key, as the log knows it. */
export interface KnownMasterKey {
  readonly id: string
  /** Only the master key itself opens it. */
  readonly canary: string
}

/** A rotation of the master key. */
export interface Rotation {
  readonly from: string
  readonly to: string
  readonly started_at: string
  /** Null while keys may still be wrapped with the former master key. */
  readonly ended: { readonly at: string; readonly rewrapped: number } | null
}

export type Installation =
  | { readonly status: 'absent' }
  | {
      readonly status: 'founded'
      readonly root_key_id: string
      /** The ids of this log, and those of logs that it replaces. The last one is its id now. */
      readonly log_ids: readonly string[]
      /** Each loss that an operator has accepted. */
      readonly acceptances: readonly string[]
      /** Id of the master key of the first start. */
      readonly founded_by: string
      /** Wraps new keys. */
      readonly current: KnownMasterKey
      /** Was replaced, and may still wrap keys; null when there is none. */
      readonly former: KnownMasterKey | null
      readonly retired: readonly string[]
      /** The latest one. */
      readonly rotation: Rotation | null
    }

export type InstallationCommand =
  | ({ readonly type: 'FoundInstallation' } & Omit<EventOf<'InstallationFounded'>, 'type'>)
  | {
      readonly type: 'ReplaceMasterKey'
      readonly master_key_id: string
      readonly canary: string
      readonly now: string
    }
  | {
      readonly type: 'RetireMasterKey'
      readonly master_key_id: string
      readonly rewrapped: number
      readonly now: string
    }
  | {
      readonly type: 'AcceptLogLoss'
      readonly log_id: string
      readonly loss: string
      readonly acceptance: string
      readonly now: string
    }

type InstallationEvent = EventOf<
  'InstallationFounded' | 'MasterKeyReplaced' | 'MasterKeyRetired' | 'LogLossAccepted'
>

/** Throws `bad_request` if a master key was replaced earlier. */
export const checkNotRetired = (retired: readonly string[], master_key_id: string): void => {
  if (retired.includes(master_key_id))
    throw new AppError('bad_request', 'master_key: expected a new key, got one that was replaced earlier')
}

/** The id of the log, and the master keys of the installation: one is current, and at most one is being replaced. */
export const installation: Decider<Installation, InstallationCommand, InstallationEvent> = {
  initial: () => ({ status: 'absent' }),

  decide(command, state) {
    if (command.type === 'FoundInstallation') {
      const { type: _, ...founded } = command
      return state.status === 'absent' ? [{ type: 'InstallationFounded', ...founded }] : []
    }
    if (state.status === 'absent')
      throw new AppError('internal_server_error', 'Expected an installation with a master key, got none')
    if (command.type === 'AcceptLogLoss') {
      const { log_id, loss, acceptance, now: at } = command
      if (state.acceptances.includes(acceptance)) return [] // another node was faster
      return [{ type: 'LogLossAccepted', log_id, loss, acceptance, at }]
    }
    const { master_key_id, now: at } = command
    const { current, former, retired } = state
    switch (command.type) {
      case 'ReplaceMasterKey':
        if (current.id === master_key_id) return []
        if (former !== null)
          throw new AppError(
            'conflict',
            'Another rotation of the master key is in progress; wait for its end',
          )
        checkNotRetired(retired, master_key_id)
        return [
          { type: 'MasterKeyReplaced', master_key_id, replaces: current.id, canary: command.canary, at },
        ]
      case 'RetireMasterKey':
        if (former?.id !== master_key_id) return []
        return [{ type: 'MasterKeyRetired', master_key_id, rewrapped: command.rewrapped, at }]
      default:
        return command satisfies never
    }
  },

  evolve(state, { event }: Folded<InstallationEvent>) {
    switch (event.type) {
      case 'InstallationFounded':
        return {
          status: 'founded',
          root_key_id: event.root_key_id,
          log_ids: [...(event.replaces ?? []), event.root_key_id],
          acceptances: [],
          founded_by: event.master_key_id,
          current: { id: event.master_key_id, canary: event.canary },
          former: null,
          retired: [],
          rotation: null,
        }
      case 'MasterKeyReplaced':
        if (state.status === 'absent') return state
        return {
          ...state,
          current: { id: event.master_key_id, canary: event.canary },
          former: state.current,
          rotation: { from: event.replaces, to: event.master_key_id, started_at: event.at, ended: null },
        }
      case 'MasterKeyRetired':
        if (state.status === 'absent') return state
        return {
          ...state,
          former: null,
          retired: [...state.retired, event.master_key_id],
          rotation: state.rotation && {
            ...state.rotation,
            ended: { at: event.at, rewrapped: event.rewrapped },
          },
        }
      case 'LogLossAccepted':
        if (state.status === 'absent') return state
        return {
          ...state,
          log_ids: [...state.log_ids, event.log_id],
          acceptances: [...state.acceptances, event.acceptance],
        }
      default:
        return foreign(event)
    }
  },
}
