import { AppError } from '../../errors.ts'
import { isId } from '../../ids.ts'
import type { ApiKeyDoc, EnvDoc, OrgDoc } from '../../projections/tenants.ts'
import type { CommandDeps } from '../deps.ts'

type Deps = Pick<CommandDeps, 'views'>

/** Finds an organization by slug or id. Rejects with `not_found`. */
export const findOrg = async ({ views }: Deps, slugOrId: string): Promise<OrgDoc> => {
  await views.settled('orgs')
  const found = isId(slugOrId)
    ? await views.orgs.get(slugOrId)
    : (await views.orgs.find({ equal: { slug: slugOrId }, sort: 'order', limit: 1, offset: 0 })).items[0]
  if (!found) throw new AppError('not_found', `No organization "${slugOrId}"`)
  return found
}

/** Finds an environment. Rejects with `not_found`, also after its deletion. */
export const findEnv = async ({ views }: Deps, env_id: string): Promise<EnvDoc> => {
  await views.settled('envs')
  const env = await views.envs.get(env_id)
  if (!env?.active) throw new AppError('not_found', `No environment ${env_id}`)
  return env
}

/** Finds an API key. Rejects with `not_found`. */
export const findApiKey = async ({ views }: Deps, api_key_id: string): Promise<ApiKeyDoc> => {
  await views.settled('apiKeys')
  const key = await views.apiKeys.get(api_key_id)
  if (!key) throw new AppError('not_found', `No API key ${api_key_id}`)
  return key
}
