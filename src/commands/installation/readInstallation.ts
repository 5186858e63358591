import type { Aggregates } from '../../domain/aggregates.ts'
import type { Installation } from '../../domain/installation.ts'
import { streamOf } from '../../events/streams.ts'

export type Founded = Extract<Installation, { status: 'founded' }>

/** Resolves with the installation as the log has it now; null before its first start. */
export const readInstallation = ({
  aggregates,
}: {
  readonly aggregates: Pick<Aggregates, 'installation'>
}): Promise<Founded | null> =>
  aggregates.installation.read(streamOf.installation, (state) =>
    state.status === 'founded'
      ? {
          ...state,
          retired: [...state.retired],
          log_ids: [...state.log_ids],
          acceptances: [...state.acceptances],
        }
      : null,
  )
