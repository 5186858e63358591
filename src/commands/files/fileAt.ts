import type { File } from '../../events/file.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** The file at a path of an environment as of now; null when there is none. */
export const fileAt = (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  env_id: string,
  path: string,
): Promise<File | null> => aggregates.files.read(streamOf.file(env_id, path), ({ file }) => file)
