import { FULL_ACCESS } from '../../access/permissions.ts'
import { parseApiToken } from '../../access/tokens.ts'
import { AppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { envIdAt } from './createEnv.ts'
import { orgIdOf } from './createOrg.ts'
import type { CommandDeps } from '../deps.ts'

export const FIRST_ORG = 'local'
export const FIRST_ENV = 'dev'

/**
 * Creates the first organization, its environment and the API key of `token` (DESIGN.md, Start and configure). Every
 * node calls it at its start; the ids are derived, so each fact is stored once. Nothing that was deleted is created again.
 * Resolves with true if it created the key.
 */
export const ensureFirstTenant = async (
  { aggregates, keyring }: Pick<CommandDeps, 'aggregates' | 'keyring'>,
  { token }: { token: string },
): Promise<boolean> => {
  const parsed = parseApiToken(token)
  if (!parsed) throw new AppError('bad_request', 'SVC_API_KEY: expected svc_<uuid>_<secret>')
  const { api_key_id, secret } = parsed
  const org_id = orgIdOf(FIRST_ORG)
  const env_id = envIdAt(FIRST_ORG, FIRST_ENV)
  const cause = { correlation_id: org_id, ...bySystem('setup') }
  const inEnv = { ...cause, env_id }
  await aggregates.orgs.handle(
    streamOf.org(org_id),
    { type: 'CreateOrg', org_id, slug: FIRST_ORG, name: 'Local', plan: 'self_host' },
    cause,
  )
  const stream = streamOf.env(env_id)
  await aggregates.envs.handle(stream, { type: 'CreateEnv', env_id, org_id, name: FIRST_ENV }, inEnv)
  if (await aggregates.envs.read(stream, ({ status }) => status === 'deleted')) return false
  const { events } = await aggregates.apiKeys.handle(
    streamOf.key(api_key_id),
    {
      type: 'CreateApiKey',
      api_key_id,
      env_id,
      name: 'first',
      mac: keyring.macOf(secret),
      permissions: FULL_ACCESS,
    },
    inEnv,
  )
  return events.length > 0
}
