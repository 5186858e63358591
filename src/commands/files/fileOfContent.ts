import type { File } from '../../events/file.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { fileAt } from './fileAt.ts'

/**
 * Reads the file at a path as it was when this content was stored there; null if it never was. The file may have other
 * content now, or be deleted.
 */
export const fileOfContent = async (
  deps: Pick<CommandDeps, 'aggregates' | 'store'>,
  env_id: string,
  { path, key }: Pick<File, 'path' | 'key'>,
): Promise<File | null> => {
  const now = await fileAt(deps, env_id, path)
  if (now?.key === key) return now
  for await (const { event } of deps.store.read(streamOf.file(env_id, path))) {
    if (event.type !== 'FileStored' || event.key !== key) continue
    const { type: _, replaced: __, ...file } = event
    return file
  }
  return null
}
