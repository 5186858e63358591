import { envIdOf } from '../events/event.ts'
import type { Projection } from './projection.ts'

/** An upload in progress, so that the sweep finds abandoned ones. Everything else about an upload is read from the log. */
export type UploadDoc = { readonly upload_id: string; readonly env_id: string; readonly expires_at: string }

export const uploads: Projection<UploadDoc> = {
  name: 'uploads',
  version: 1,
  indexes: [{ equal: [], sort: 'expires_at' }],
  handles: ['UploadBegun', 'UploadCompleted', 'UploadAborted'],
  idsOf: ({ event }) => ('upload_id' in event ? [event.upload_id] : []),

  evolve(doc, recorded) {
    const { event } = recorded
    switch (event.type) {
      case 'UploadBegun':
        return { upload_id: event.upload_id, env_id: envIdOf(recorded), expires_at: event.expires_at }
      case 'UploadCompleted':
      case 'UploadAborted':
        return null
      default:
        return doc
    }
  },
}
