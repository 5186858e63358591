import { openSecrets } from '../../src/process/bootstrap.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import type { TenantCommand } from '../../src/domain/tenant.ts'
import { readConfig } from '../../src/process/config.ts'
import { openStore } from '../../src/process/engines.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import type { Plan } from '../../src/events/org.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { newApiToken, parseApiToken } from '../../src/access/tokens.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { installation } from './installation.ts'

export interface PlantedEnv {
  readonly env_id: string
  /** An API key that may do everything. */
  readonly key: string
}

const PER_APPEND = 500

/**
 * Adds an organization with an environment for each list of facts to a data directory that no service has open; the
 * facts lie in the log as if they had happened.
 */
export const plantOrg = async (
  dataDir: string,
  plan: Plan,
  ...histories: readonly (readonly DomainEvent[])[]
): Promise<PlantedEnv[]> => {
  const config = readConfig(installation(dataDir))
  const keyring = new Keyring(openSecrets(config).masterKey)
  const store = await openStore(config)
  const { tenants } = openAggregates(store)
  const org_id = newId()
  const create = (stream: string, fact: TenantCommand['fact']) =>
    tenants.handle(stream, { type: 'Create', fact }, { correlation_id: org_id })
  await create(streamOf.org(org_id), { type: 'OrgCreated', org_id, slug: org_id, name: 'Planted', plan })
  const planted: PlantedEnv[] = []
  for (const [i, facts] of histories.entries()) {
    const env_id = newId()
    const key = newApiToken(newId())
    const { api_key_id, secret } = parseApiToken(key) ?? { api_key_id: '', secret: '' }
    await create(streamOf.env(env_id), { type: 'EnvCreated', env_id, org_id, name: `env-${i}` })
    await create(streamOf.key(api_key_id), {
      type: 'ApiKeyCreated',
      api_key_id,
      env_id,
      name: 'test',
      mac: keyring.macOf(secret),
      permissions: { '*:*': ['*'] },
    })
    const metadata = { env_id, correlation_id: org_id }
    for (let at = 0; at < facts.length; at += PER_APPEND) {
      const some = facts.slice(at, at + PER_APPEND).map((event) => ({ id: newId(), event, metadata }))
      await store.append(streamOf.stream(env_id), some, at === 0 ? 'none' : at - 1)
    }
    planted.push({ env_id, key })
  }
  await store.close()
  return planted
}
