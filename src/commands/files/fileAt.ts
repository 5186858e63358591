import type { File } from '../../events/file.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Reads the file at a path of an environment from the log; null when there is none. */
export const fileAt = (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  env_id: string,
  path: string,
): Promise<File | null> => aggregates.files.read(streamOf.file(env_id, path), ({ file }) => file)
