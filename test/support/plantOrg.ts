import { openAggregates } from '../../src/domain/aggregates.ts'
import { readConfig } from '../../src/process/config.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import type { Plan } from '../../src/events/org.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { FULL_ACCESS } from '../../src/access/permissions.ts'
import { newApiToken, parseApiToken } from '../../src/access/tokens.ts'
import { installation } from './installation.ts'
import { openLog } from './openLog.ts'

export interface PlantedEnv {
  readonly env_id: string
  /** An API key with full access. */
  readonly key: string
}

const PER_APPEND = 500

/**
 * Adds an organization to a data directory that no service uses. Each list of facts becomes the history of an
 * environment.
 */
export const plantOrg = async (
  dataDir: string,
  plan: Plan,
  ...histories: readonly (readonly DomainEvent[])[]
): Promise<PlantedEnv[]> => {
  const config = readConfig(installation(dataDir))
  const { store, keyring } = await openLog(config)
  const { orgs, envs, apiKeys } = openAggregates(store)
  const org_id = newId()
  const cause = { correlation_id: org_id }
  await orgs.handle(
    streamOf.org(org_id),
    { type: 'CreateOrg', org_id, slug: org_id, name: 'Planted', plan },
    cause,
  )
  const planted: PlantedEnv[] = []
  for (const [i, facts] of histories.entries()) {
    const env_id = newId()
    const key = newApiToken(newId())
    const { api_key_id, secret } = parseApiToken(key) ?? { api_key_id: '', secret: '' }
    const metadata = { ...cause, env_id }
    await envs.handle(streamOf.env(env_id), { type: 'CreateEnv', env_id, org_id, name: `env-${i}` }, metadata)
    const mac = keyring.macOf(secret)
    await apiKeys.handle(
      streamOf.key(api_key_id),
      { type: 'CreateApiKey', api_key_id, env_id, name: 'test', mac, permissions: FULL_ACCESS },
      metadata,
    )
    for (let at = 0; at < facts.length; at += PER_APPEND) {
      const some = facts.slice(at, at + PER_APPEND).map((event) => ({ id: newId(), event, metadata }))
      await store.append(streamOf.stream(env_id), some, at === 0 ? 'none' : at - 1)
    }
    planted.push({ env_id, key })
  }
  await store.close()
  return planted
}
