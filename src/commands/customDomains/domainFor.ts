import { AppError } from '../../errors.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import type { CommandDeps } from '../deps.ts'

/** Reads a domain of the environment. Rejects with `not_found`, also for a domain of another environment (I7). */
export const domainFor = async (
  { views }: Pick<CommandDeps, 'views'>,
  env_id: string,
  domain_id: string,
): Promise<DomainDoc> => {
  await views.settled('domains')
  const doc = await views.domains.get(domain_id)
  if (doc?.env_id !== env_id) throw new AppError('not_found', `No domain ${domain_id}`)
  return doc
}
