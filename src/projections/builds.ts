import { envIdOf } from '../events/event.ts'
import type { FunctionSpec } from '../events/project.ts'
import type { PayloadRef } from '../events/scalars.ts'
import { orderOf, type Projection } from './projection.ts'

/** A build (SPEC.md, Build) with the functions it exports. */
export type BuildDoc = {
  readonly build_id: string
  readonly project_id: string
  readonly env_id: string
  readonly hash: string
  readonly size: number
  readonly build_type: 'release' | 'live'
  readonly deployed: boolean
  readonly active: boolean
  readonly created_at: string
  readonly updated_at: string
  readonly storage_path: string
  readonly storage_backend: string
  readonly functions?: readonly FunctionSpec[]
  readonly functions_ref?: PayloadRef
  readonly order: string
}

/** The document id of a build. Clients choose build ids, so several projects may use the same one. */
export const buildDocId = (project_id: string, build_id: string): string => `${project_id}/${build_id}`

export const builds: Projection<BuildDoc> = {
  name: 'builds',
  version: 5,
  indexes: [
    { equal: ['env_id'], sort: 'order', counted: true },
    { equal: ['project_id'], sort: 'order', counted: true },
    { equal: ['project_id', 'hash'], sort: 'order' },
    { equal: ['project_id', 'build_type'], sort: 'order' },
    { equal: ['project_id', 'deployed'], sort: 'order' },
    { equal: ['deployed'], sort: 'order' },
    { equal: ['hash'], sort: 'order' },
    { equal: ['build_type'], sort: 'order' },
  ],
  handles: ['BuildUploaded', 'BuildDeployed', 'BuildDeleted', 'ProjectDeleted'],

  idsOf({ event }) {
    switch (event.type) {
      case 'BuildUploaded':
      case 'BuildDeleted':
        return [buildDocId(event.project_id, event.build_id)]
      case 'BuildDeployed':
        return [event.previous_build_id, event.build_id]
          .filter((build_id) => build_id !== undefined)
          .map((build_id) => buildDocId(event.project_id, build_id))
      case 'ProjectDeleted':
        return event.build_ids.map((build_id) => buildDocId(event.project_id, build_id))
      default:
        return []
    }
  },

  evolve(doc, recorded, id) {
    const { event, at } = recorded
    switch (event.type) {
      case 'BuildUploaded': {
        const { type: _, ...build } = event
        return {
          ...build,
          env_id: envIdOf(recorded),
          deployed: false,
          active: true,
          created_at: at,
          updated_at: at,
          order: orderOf(recorded),
        }
      }
      case 'BuildDeployed':
        return (
          doc && { ...doc, deployed: id === buildDocId(event.project_id, event.build_id), updated_at: at }
        )
      case 'BuildDeleted':
      case 'ProjectDeleted':
        return null
      default:
        return doc
    }
  },
}
