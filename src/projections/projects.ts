import { envIdOf } from '../events/event.ts'
import { type Pause, pausesAfter } from './pauses.ts'
import { orderOf, type Projection } from './projection.ts'

/** A project (SPEC.md). */
export type ProjectDoc = {
  readonly project_id: string
  readonly env_id: string
  readonly name: string
  /** The hosts that functions may reach; null: every public host. */
  readonly network: readonly string[] | null
  /** Absent in documents of version 3, whose build knew no pauses. */
  readonly pauses?: readonly Pause[]
  readonly active: boolean
  readonly created_at: string
  readonly updated_at: string
  readonly order: string
}

export const projects: Projection<ProjectDoc> = {
  name: 'projects',
  version: 4,
  indexes: [{ equal: ['env_id'], sort: 'order', counted: true }],
  handles: [
    'ProjectCreated',
    'ProjectRenamed',
    'ProjectNetworkChanged',
    'SchedulePaused',
    'ScheduleResumed',
    'ProjectDeleted',
  ],
  idsOf: ({ event }) => ('project_id' in event ? [event.project_id ?? ''] : []),

  evolve(doc, recorded) {
    const { event, at } = recorded
    switch (event.type) {
      case 'ProjectCreated':
        return {
          project_id: event.project_id,
          env_id: envIdOf(recorded),
          name: event.name,
          network: event.network ?? null,
          pauses: [],
          active: true,
          created_at: at,
          updated_at: at,
          order: orderOf(recorded),
        }
      case 'ProjectRenamed':
        return doc && { ...doc, name: event.name, updated_at: at }
      case 'ProjectNetworkChanged':
        return doc && { ...doc, network: event.network, updated_at: at }
      case 'SchedulePaused':
      case 'ScheduleResumed':
        return doc && { ...doc, pauses: pausesAfter(doc.pauses ?? [], event, at) }
      case 'ProjectDeleted':
        return null
      default:
        return doc
    }
  },
}
