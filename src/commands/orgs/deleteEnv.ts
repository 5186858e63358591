import { AppError, isAppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { isId } from '../../ids.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { deleteApiKey } from '../credentials/deleteApiKey.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Deletes an environment. Its credentials end at once, and its functions and webhooks no longer exist. The saga `purgeEnvs`
 * removes its content. A repetition changes nothing. Rejects with `not_found` for an id that no environment ever had.
 */
export const deleteEnv = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'authenticator'>,
  { env_id }: { env_id: string },
  cause: Cause,
): Promise<void> => {
  if (!isId(env_id)) throw new AppError('not_found', `No environment ${env_id}`)
  const inEnv = { ...cause, env_id }
  await deps.aggregates.envs.handle(streamOf.env(env_id), { type: 'DeleteEnv', env_id }, inEnv)
  await deleteApiKeys(deps, { env_id }, cause)
}

/** Deletes the API keys of an environment that are left. */
export const deleteApiKeys = async (
  deps: Parameters<typeof deleteApiKey>[0],
  { env_id }: { env_id: string },
  cause: Cause,
): Promise<void> => {
  const { views } = deps
  await views.settled('apiKeys')
  for await (const { api_key_id } of everyDoc(views.apiKeys, {
    id: 'api_key_id',
    equal: { env_id },
    sort: 'order',
  }))
    await deleteApiKey(deps, { api_key_id }, cause).catch(unlessGone)
}

/** The request and the saga delete the same keys. */
const unlessGone = (error: unknown): void => {
  if (!isAppError(error, 'not_found')) throw error
}
