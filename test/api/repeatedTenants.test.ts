import { createHash, randomUUID } from 'node:crypto'
import * as assert from 'uvu/assert'
import { envIdAt } from '../../src/commands/orgs/createEnv.ts'
import { orgIdOf } from '../../src/commands/orgs/createOrg.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { openLog } from '../support/openLog.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const repeated = suite('the creation of an organization or environment, repeated with its key')

repeated('is completed after a crash between its fact and its reply', async () => {
  const dataDir = tempDir()
  await (await startServer({ dataDir })).stop()
  const config = readConfig(installation(dataDir))
  const { operatorToken } = openSecrets(config)
  const { store, keyring } = await openLog(config)
  const append = (stream: string, event: DomainEvent, env_id?: string) =>
    store.append(
      stream,
      [{ id: randomUUID(), event, metadata: { correlation_id: newId(), ...(env_id && { env_id }) } }],
      'none',
    )
  /** The claim of a request whose node died. Returns what that node generated as the id of `what`. */
  const claim = async (path: string, body: object, what: string): Promise<string> => {
    const claim_id = newId()
    const scope = ['operator', 'operator', 'POST', path, 'k']
    const stream = streamOf.request(createHash('sha256').update(JSON.stringify(scope)).digest('hex'))
    await append(
      stream,
      {
        type: 'RequestClaimed',
        claim_id,
        attempt: 1,
        fingerprint: keyring.macOf(JSON.stringify(['', body])),
        holder: 'dead',
        at: new Date().toISOString(),
        until: new Date(Date.now() + 600_000).toISOString(),
      },
      'operator',
    )
    return derivedIdBeside(claim_id, what)
  }
  const [org_id, env_id] = [orgIdOf('acme'), envIdAt('acme', 'dev')]
  const org = { slug: 'acme', plan: 'pro' } as const
  const ofOrg = await claim('/operator/orgs', org, 'org')
  await append(streamOf.org(org_id), {
    type: 'OrgCreated',
    org_id,
    ...org,
    name: 'acme',
    creation_id: ofOrg,
  })
  const ofEnv = await claim('/operator/orgs/acme/envs', { name: 'dev' }, 'env')
  const created = { type: 'EnvCreated', env_id, org_id, name: 'dev', creation_id: ofEnv } as const
  await append(streamOf.env(env_id), created, env_id)
  await store.close()

  const server = await startServer({ dataDir })
  const operator = openApi(server.url, operatorToken)
  const send = async (path: string, body: object, key: string) => {
    const answer = await until(async () => {
      const sent = { body, headers: { 'Idempotency-Key': key } }
      const answer = await operator.send('POST', `${server.url}/operator${path}`, sent)
      return answer.text.includes('still in progress') ? undefined : answer
    })
    const { data, error } = answer.json as { data?: Record<string, unknown>; error?: { code: string } }
    return [answer.status, data?.['org_id'] ?? error?.code, data?.['env_id']]
  }
  assert.equal(await send('/orgs', org, 'k'), [201, org_id, undefined])
  assert.equal(await send('/orgs/acme/envs', { name: 'dev' }, 'k'), [201, org_id, env_id])
  assert.equal(await send('/orgs', org, 'other'), [409, 'conflict', undefined])
  assert.equal(await send('/orgs/acme/envs', { name: 'dev' }, 'other'), [409, 'conflict', undefined])
  await server.stop()
})

repeated.run()
