import { AppError, isAppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { isId } from '../../ids.ts'
import { type ApiKeyDoc, apiKeys, type EnvDoc, envs, type OrgDoc, orgs } from '../../projections/tenants.ts'
import type { CommandDeps } from '../deps.ts'
import { orgIdOf } from '../orgs/createOrg.ts'
import { findOrg } from '../orgs/findTenant.ts'
import { type PastDeps, pastOf } from './past.ts'

type Deps = PastDeps & Pick<CommandDeps, 'views'>

/** The organization as it was, by its id, or by the slug that it still has. Rejects with `not_found`. */
export const orgThen = async (deps: Deps, slugOrId: string, as_of: string): Promise<OrgDoc> => {
  const past = await pastOf(deps, as_of)
  const org_id = isId(slugOrId) ? slugOrId : await idOfSlug(deps, slugOrId)
  const found = (await past.fold(orgs, [streamOf.org(org_id)])).get(org_id)
  if (!found) throw new AppError('not_found', `There was no organization "${slugOrId}" then`)
  return found
}

/** The first organization of a slug has an id that follows from it, also after its deletion. */
const idOfSlug = async (deps: Deps, slug: string): Promise<string> => {
  try {
    return (await findOrg(deps, slug)).org_id
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    return orgIdOf(slug)
  }
}

/** The environment as it was. Rejects with `not_found`, also after its deletion. */
export const envThen = async (deps: PastDeps, env_id: string, as_of: string): Promise<EnvDoc> => {
  const past = await pastOf(deps, as_of)
  const found = (await past.fold(envs, [streamOf.env(env_id)])).get(env_id)
  if (!found?.active) throw new AppError('not_found', `There was no environment ${env_id} then`)
  return found
}

/** The API key as it was. Rejects with `not_found`. */
export const apiKeyThen = async (deps: PastDeps, api_key_id: string, as_of: string): Promise<ApiKeyDoc> => {
  const past = await pastOf(deps, as_of)
  const found = (await past.fold(apiKeys, [streamOf.key(api_key_id)])).get(api_key_id)
  if (!found) throw new AppError('not_found', `There was no API key ${api_key_id} then`)
  return found
}
