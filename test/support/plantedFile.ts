import type { EventOf } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'

const AT = '2026-05-01T10:00:00.000Z'

/** The fact of a file that counts as storage and has no content. */
export const plantedFile = (path: string, size: number): EventOf<'FileStored'> => ({
  type: 'FileStored',
  file_id: newId(),
  path,
  key: `files/planted/${path}`,
  size,
  etag: '"planted"',
  content_type: 'text/plain',
  storage_backend: 'disk',
  created_by_run_id: null,
  updated_by_run_id: null,
  created_at: AT,
  updated_at: AT,
})
