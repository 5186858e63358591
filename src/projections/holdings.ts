import { envIdOf } from '../events/event.ts'
import type { Projection } from './projection.ts'

/** The stored bytes of an environment besides its files: those of a project's builds, or of the parts of an upload. */
export type HoldingDoc = {
  /** Id of the project or upload. */
  readonly holder: string
  readonly env_id: string
  readonly kind: 'builds' | 'parts'
  readonly bytes: number
}

/** They count as storage of the plan, from their arrival until they are deleted. */
export const holdings: Projection<HoldingDoc> = {
  name: 'holdings',
  version: 2,
  indexes: [{ equal: ['env_id', 'kind'], sort: 'holder', counted: true }],
  handles: [
    'BuildUploaded',
    'BuildDeleted',
    'ProjectDeleted',
    'UploadBegun',
    'PartUploaded',
    'UploadCompleted',
    'UploadAborted',
  ],
  idsOf({ event }) {
    if ('upload_id' in event) return [event.upload_id]
    return 'project_id' in event && event.project_id !== undefined ? [event.project_id] : []
  },

  evolve(doc, recorded, holder) {
    const { event } = recorded
    const bytes = doc?.bytes ?? 0
    switch (event.type) {
      case 'BuildUploaded':
        return {
          holder,
          env_id: envIdOf(recorded),
          kind: 'builds',
          bytes: bytes + event.size + (event.functions_ref?.size ?? 0),
        }
      case 'BuildDeleted':
        return doc && { ...doc, bytes: bytes - event.size }
      case 'UploadBegun':
        return { holder, env_id: envIdOf(recorded), kind: 'parts', bytes: 0 }
      case 'PartUploaded':
        return doc && { ...doc, bytes: bytes + event.size - (event.replaced_size ?? 0) }
      case 'ProjectDeleted':
      case 'UploadCompleted':
      case 'UploadAborted':
        return null
      default:
        return doc
    }
  },
}
