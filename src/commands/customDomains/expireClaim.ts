import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import type { CommandDeps } from '../deps.ts'

/** The time in which the owner of a domain must prove it. Afterwards, the name is available again. */
export const CLAIM_MS = 7 * 24 * 60 * 60 * 1000

/** The time at which an unproved claim expires, in milliseconds since 1970; null for a proved domain. */
export const expiryOf = ({
  status,
  is_proved,
  since,
}: Pick<DomainDoc, 'status' | 'is_proved' | 'since'>): number | null =>
  status === 'pending_validation' && !is_proved ? Date.parse(since) + CLAIM_MS : null

/** Deletes a domain that is still unproved. Resolves with whether its name can be given to another holder. */
export const expireClaim = async (
  { aggregates }: { readonly aggregates: Pick<CommandDeps['aggregates'], 'domains'> },
  { domain_id, org_id, env_id }: Pick<DomainDoc, 'domain_id' | 'org_id' | 'env_id'>,
  correlation_id: string,
): Promise<boolean> => {
  const stream = streamOf.domains(org_id)
  // Another tenant may have asked for the name: it is not named in the log of this one.
  const cause = { env_id, correlation_id, ...bySystem('domains') }
  await aggregates.domains.handle(stream, { type: 'ExpireDomain', domain_id }, cause)
  return aggregates.domains.read(
    stream,
    (known) => (known.get(domain_id)?.status ?? 'deleting') === 'deleting',
  )
}
