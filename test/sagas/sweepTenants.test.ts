import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { streamOf } from '../../src/events/streams.ts'
import { silent } from '../../src/logger.ts'
import { sweepTenants, sweepTenantsCore } from '../../src/sagas/sweepTenants.ts'
import { openCommands } from '../commands/openCommands.ts'
import { plantEnv } from '../commands/plantEnv.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { reacting } from './reacting.ts'
import { running } from './running.ts'

const HOUR = 3600_000
const SWEEPS = ['expireCalls', 'forgetConsumers', 'deleteOrphanEnvs'] as const
const alarm = (sweep: (typeof SWEEPS)[number], at: number) =>
  ({ do: 'setAlarm', key: sweep, at, input: { type: 'due', sweep } }) as const

const rule = suite('the rules of the sweep of tenants')
rule('the first sweeps follow within a minute of the start', () =>
  reacting(sweepTenantsCore)
    .given()
    .when({ type: 'started', spread: 1 })
    .at(1000)
    .then(...SWEEPS.map((sweep) => alarm(sweep, 61_000))),
)
rule('each is repeated every six hours', () => {
  for (const sweep of SWEEPS)
    reacting(sweepTenantsCore)
      .given()
      .when({ type: 'due', sweep })
      .at(1000)
      .then({ do: 'carryOut', key: sweep, command: { sweep, now: 1000 } }, alarm(sweep, 1000 + 6 * HOUR))
})
rule.run()

const sweep = suite('the sweep of tenants')
sweep('records what the plans keep no longer before the store removes its facts', async () => {
  const node = await openCommands()
  const { env_id } = await plantEnv(node, 'o-sweep', 'free')
  const recorded: number[] = []
  const scavenge = async () =>
    recorded.push((await Array.fromAsync(node.store.read(streamOf.calls(env_id)))).length)
  const store = forwarding(node.store, { scavenge })
  const { carryOut } = sweepTenants({ ...node.deps, store, logger: silent })
  await carryOut({ sweep: 'expireCalls', now: clock.now() }, running)
  await carryOut({ sweep: 'forgetConsumers', now: clock.now() }, running)
  assert.equal(recorded, [1])
  await node.close()
})
sweep('deletes an environment that a deleted organization has', async () => {
  const node = await openCommands()
  const { env_id } = await plantEnv(node, 'o-orphan')
  await node.views.settled('envs')
  const { org_id = '' } = (await node.views.envs.get(env_id)) ?? {}
  const deletion = { type: 'DeleteOrg', org_id, env_ids: [] } as const
  await node.aggregates.orgs.handle(streamOf.org(org_id), deletion, { correlation_id: org_id })
  const saga = sweepTenants({ ...node.deps, logger: silent })
  await saga.carryOut({ sweep: 'deleteOrphanEnvs', now: clock.now() }, running)
  await node.views.settled('envs')
  assert.is((await node.views.envs.get(env_id))?.active, false)
  await node.close()
})
sweep.run()
