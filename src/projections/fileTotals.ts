import { envIdOf } from '../events/event.ts'
import type { Projection } from './projection.ts'

/** The total size of the files of an environment. */
export type FileTotalDoc = {
  readonly env_id: string
  readonly bytes: number
}

export const fileTotals: Projection<FileTotalDoc> = {
  name: 'file_totals',
  version: 1,
  indexes: [],
  handles: ['FileStored', 'FileDeleted', 'EnvPurged'],
  idsOf: (recorded) => [envIdOf(recorded)],

  evolve(doc, recorded) {
    const { event } = recorded
    const { env_id, bytes } = doc ?? { env_id: envIdOf(recorded), bytes: 0 }
    switch (event.type) {
      case 'FileStored':
        return { env_id, bytes: bytes + event.size - (event.replaced?.size ?? 0) }
      case 'FileDeleted':
        return { env_id, bytes: bytes - event.former.size }
      case 'EnvPurged':
        return null
      default:
        return doc
    }
  },
}
