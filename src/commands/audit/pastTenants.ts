import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { isId } from '../../ids.ts'
import { type ApiKeyDoc, apiKeys, type EnvDoc, envs, type OrgDoc, orgs } from '../../projections/tenants.ts'
import { orgIdOf } from '../orgs/createOrg.ts'
import { type PastDeps, pastOf } from './past.ts'

/** The organization as it was, by its id, or by the slug that it had. Rejects with `not_found`. */
export const orgThen = async (deps: PastDeps, slugOrId: string, as_of: string): Promise<OrgDoc> => {
  const past = await pastOf(deps, as_of)
  const ids = isId(slugOrId) ? [slugOrId] : idsOfSlug(deps, slugOrId)
  for await (const org_id of ids) {
    const found = (await past.fold(orgs, [streamOf.org(org_id)])).get(org_id)
    if (found) return found
  }
  throw new AppError('not_found', `There was no organization "${slugOrId}" then`)
}

/** The organizations that have had a slug, one after the other: each has an id that follows from it, also after its deletion. */
async function* idsOfSlug({ store }: PastDeps, slug: string): AsyncGenerator<string> {
  for (let deleted = 0; ; deleted++) {
    const org_id = orgIdOf(slug, deleted)
    const [first] = await Array.fromAsync(store.read(streamOf.org(org_id), { limit: 1 }))
    if (!first) return
    yield org_id
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
