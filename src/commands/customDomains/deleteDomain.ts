import { streamOf } from '../../events/streams.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { domainFor } from './domainFor.ts'

/**
 * Deletes a custom domain (SPEC.md, Custom domains). It stops serving its environment at once; the domain saga removes
 * the rest. Rejects with `not_found`.
 */
export const deleteDomain = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { domain_id }: { domain_id: string },
  { cause }: Caller,
): Promise<void> => {
  const { org_id } = await domainFor(deps, cause.env_id, domain_id)
  await deps.aggregates.domains.handle(streamOf.domains(org_id), { type: 'DeleteDomain', domain_id }, cause)
}
