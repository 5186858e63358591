import { envIdOf } from '../events/event.ts'
import type { File } from '../events/file.ts'
import type { Projection } from './projection.ts'

/** A file (SPEC.md, File) with the key of its content. */
export type FileDoc = File & { readonly env_id: string }

export const files: Projection<FileDoc> = {
  name: 'files',
  version: 2,
  indexes: [
    { equal: ['env_id'], sort: 'path', counted: true },
    { equal: ['key'], sort: 'path' }, // finds a file that still has the content
  ],
  handles: ['FileStored', 'FileDeleted'],
  idsOf: ({ event }) => ('file_id' in event ? [event.file_id] : []),

  evolve(doc, recorded) {
    const { event } = recorded
    switch (event.type) {
      case 'FileStored': {
        const { type: _, replaced: __, ...file } = event
        return { ...file, env_id: envIdOf(recorded) }
      }
      case 'FileDeleted':
        return null
      default:
        return doc
    }
  },
}
