import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** Reads the sealed value from the fact at a revision of a project's context, because the state contains no values. */
export const sealedVariable = async (
  { store }: Pick<CommandDeps, 'store'>,
  project_id: string,
  revision: number,
): Promise<string> => {
  for await (const { event } of store.read(streamOf.context(project_id), { from: revision, limit: 1 })) {
    if ('sealed' in event && event.sealed !== undefined) return event.sealed
  }
  throw new AppError('internal_server_error', `Expected a value at revision ${revision} of the context`)
}
