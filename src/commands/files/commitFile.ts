import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { File } from '../../events/file.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { demandAction, type WriteRights } from './demandWrite.ts'
import { discardContent } from './discardContent.ts'
import { fileOfContent } from './fileOfContent.ts'

type Content = Pick<File, 'path' | 'key' | 'size' | 'etag' | 'content_type'>

/**
 * Makes stored content the content of the file at its path. The content is durable before this fact names it (I1).
 * Replaced content is removed afterwards; the sweep removes it after a crash. A repeat resolves with the same file.
 * Rejects with `forbidden` if the rights do not allow to create the file, or to update the one at the path.
 */
export const commitFile = async (
  { aggregates, blobs, store }: Pick<CommandDeps, 'aggregates' | 'blobs' | 'store'>,
  { run_id, rights, ...content }: Content & { file_id: string; run_id: string | null; rights: WriteRights },
  cause: EnvCause,
): Promise<File> => {
  const { env_id } = cause
  const demand = (action: 'create' | 'update') => demandAction(rights, content.path, action)
  const file = { ...content, storage_backend: blobs.backend }
  const { events } = await aggregates.files.handle(
    streamOf.file(env_id, content.path),
    { type: 'StoreFile', file, run_id, now: clock.iso(), demand },
    cause,
  )
  const [fact] = events
  if (fact?.type === 'FileStored') {
    const { type: _, replaced, ...stored } = fact
    if (replaced) await discardContent(blobs, replaced.key)
    return stored
  }
  const stored = await fileOfContent({ aggregates, store }, env_id, content)
  if (!stored) throw new AppError('unavailable', `The event store returned no fact of "${content.path}"`)
  return stored
}
