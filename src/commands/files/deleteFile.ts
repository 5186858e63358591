import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { discardContent } from './discardContent.ts'

/** Deletes a file and its content (SPEC.md, Files). Rejects with `not_found`, also when another caller was faster. */
export const deleteFile = async (
  { aggregates, blobs }: Pick<CommandDeps, 'aggregates' | 'blobs'>,
  { path, file_id }: { path: string; file_id: string },
  cause: EnvCause,
): Promise<void> => {
  const { events } = await aggregates.files.handle(
    streamOf.file(cause.env_id, path),
    { type: 'DeleteFile', file_id },
    cause,
  )
  for (const event of events) if (event.type === 'FileDeleted') await discardContent(blobs, event.former.key)
}
