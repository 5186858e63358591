import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

interface Keys {
  /** The key that seals new texts; null while there is none. */
  readonly current: string | null
  /** All keys that are not destroyed. */
  readonly alive: readonly string[]
  readonly destroyed: readonly string[]
  readonly closed: boolean
}

export type DataKeyCommand =
  | {
      readonly type: 'CreateDataKey'
      readonly key_id: string
      readonly project_id?: string
      /** The key that this one replaces. If another key already replaced it, that key stays current. */
      readonly replaces: string | null
    }
  | { readonly type: 'DestroyDataKeys'; readonly project_id?: string; readonly final: boolean }

type DataKeyEvent = EventOf<'DataKeyCreated' | 'DataKeysDestroyed'>

/** The data keys of an environment or of one project: one of them is current, until all are destroyed. */
export const dataKey: Decider<Keys, DataKeyCommand, DataKeyEvent> = {
  initial: () => ({ current: null, alive: [], destroyed: [], closed: false }),

  decide(command, { current, closed }) {
    const of = command.project_id === undefined ? {} : { project_id: command.project_id }
    switch (command.type) {
      case 'CreateDataKey':
        if (closed) throw new AppError('not_found', 'No such project')
        if (current !== command.replaces) return []
        return [{ type: 'DataKeyCreated', key_id: command.key_id, ...of }]
      case 'DestroyDataKeys':
        if (closed || (current === null && !command.final)) return []
        return [{ type: 'DataKeysDestroyed', ...of, final: command.final }]
      default:
        return command satisfies never
    }
  },

  evolve(keys, { event }: Folded<DataKeyEvent>) {
    switch (event.type) {
      case 'DataKeyCreated':
        return { ...keys, current: event.key_id, alive: [...keys.alive, event.key_id] }
      case 'DataKeysDestroyed': {
        const { key_ids, final } = event
        const isGone = (id: string): boolean => key_ids === undefined || key_ids.includes(id)
        const alive = keys.alive.filter((id) => !isGone(id))
        return {
          current: alive.at(-1) ?? null,
          alive,
          destroyed: [...keys.destroyed, ...keys.alive.filter(isGone)],
          closed: final,
        }
      }
      default:
        return foreign(event)
    }
  },
}
