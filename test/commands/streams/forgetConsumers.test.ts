import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { forgetConsumers } from '../../../src/commands/streams/forgetConsumers.ts'
import { nameConsumer } from '../../../src/commands/streams/nameConsumer.ts'
import { UNUSED_DAYS } from '../../../src/domain/env.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const DAY_MS = 86_400_000
const dayIn = (days: number): number => clock.now() + days * DAY_MS

/** The groups that the store was asked to drop. */
const dropped: string[] = []
const deps = {
  ...node.deps,
  store: forwarding(node.store, {
    dropGroup: async (group: string) => {
      dropped.push(group)
      await node.store.dropGroup(group)
    },
  }),
}

const consumers = suite('the names of consumers')

consumers('are forgotten with their positions when no client used them for 30 days', async () => {
  const { env_id, caller } = await plantEnv(node, `o-${newId().slice(-12)}`)
  const group = await nameConsumer(deps, 'idle', caller)
  assert.is(await forgetConsumers(deps, { now: dayIn(UNUSED_DAYS - 1) }), 0)
  assert.equal(dropped, [])
  assert.is(await forgetConsumers(deps, { now: dayIn(UNUSED_DAYS + 1) }), 1)
  assert.equal(dropped.splice(0), [group])
  assert.is(await forgetConsumers(deps, { now: dayIn(UNUSED_DAYS + 1) }), 0)
  const names = await node.aggregates.envs.read(streamOf.env(env_id), (env) => [...env.consumers])
  assert.equal(names, [])
})

consumers('count up to the limit of the plan, which the error names', async () => {
  const { caller } = await plantEnv(node, `o-${newId().slice(-12)}`, 'free')
  for (let n = 0; n < 20; n++) await nameConsumer(deps, `c${n}`, caller)
  const { message } = await refusedWith('quota_exceeded', () => nameConsumer(deps, 'more', caller))
  assert.match(message, 'the plan allows 20 names of consumers')
  assert.match(message, `no client used it for ${UNUSED_DAYS} days`)
  await nameConsumer(deps, 'c0', caller)
})
consumers.after(() => node.close())
consumers.run()
