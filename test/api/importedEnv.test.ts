import * as assert from 'uvu/assert'
import { envRoutes } from '../../src/api/routes/env.ts'
import { replayStream } from '../../src/commands/audit/replayStream.ts'
import { openCommands } from '../commands/openCommands.ts'
import { plantEnv } from '../commands/plantEnv.ts'
import { cause, entriesOf, fill, importInto } from '../commands/transfer/importHarness.ts'
import { suite } from '../support/suite.ts'

const [source, target] = await Promise.all([openCommands(), openCommands()])
const mine = await plantEnv(source, 'acme', 'starter')
const { env_id } = mine
await fill(source, mine)
await source.deps.aggregates.calls.handle(
  `calls-${env_id}`,
  { type: 'ExpireCalls', env_id, before: '2026-05-02' },
  { ...cause, env_id },
)
await importInto(target, await entriesOf(source, mine))
await target.views.settled()

/** What `GET /v1/env` replies. */
const envThen = (as_of: string): Promise<unknown> => {
  const route = envRoutes.find(({ operationId }) => operationId === 'getEnvironment')
  const ask = { credential: { env_id }, query: { as_of }, deps: target.deps }
  return Promise.resolve(route?.handle(ask as never)).then(
    (reply) => (reply as { data: unknown }).data,
    String,
  )
}

const imported = suite('an imported environment whose earlier runs have expired')

imported('has past states from its creation on', async () => {
  const now = await target.views.envs.get(env_id)
  assert.equal(await envThen(await target.deps.store.head()), {
    env_id,
    org_id: now?.org_id,
    name: 'dev',
    active: true,
  })
})

imported('is replayed from its creation on', async () => {
  const { items } = await replayStream(target.deps, { resource: env_id, limit: 10, offset: 0 })
  assert.equal(
    items.map(({ fact }) => fact.event.type),
    ['EnvCreated', 'EnvImported'],
  )
})
imported.run()
