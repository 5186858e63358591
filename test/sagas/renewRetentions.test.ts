import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { orgIdOf } from '../../src/commands/orgs/createOrg.ts'
import { renewRetention } from '../../src/commands/orgs/renewRetention.ts'
import { changeOrg } from '../../src/commands/orgs/changeOrg.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { streamOf } from '../../src/events/streams.ts'
import { renewRetentions } from '../../src/sagas/renewRetentions.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { openCommands } from '../commands/openCommands.ts'
import { plantEnv } from '../commands/plantEnv.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const DAY = 86_400
const node = await openCommands()
const set = new Map<string, number | null>()
const store = forwarding(node.store, {
  expire: async (stream, seconds) => void set.set(stream, seconds),
})

const publish = async (env_id: string): Promise<string> => {
  const stream_id = newId()
  const command = {
    type: 'PublishEvent',
    stream_id,
    env_id,
    event_id: newId(),
    event_type: 'x',
    data: { value: null },
    source: 'api',
    create: true,
    now: clock.iso(),
  } as const
  await node.aggregates.streams.handle(streamOf.stream(stream_id), command, { env_id, correlation_id: 'c' })
  return streamOf.stream(stream_id)
}

const renewing = suite('the retention after a change of the plan')
renewing('is that of the new plan, for every stream of the organization and no other', async () => {
  void runSaga(
    renewRetentions({ ...node.deps, store, logger: silent }),
    { logger: silent, clock },
    node.signal,
  )
  const [slug, other] = [`o-${newId().slice(-12)}`, `o-${newId().slice(-12)}`]
  const { env_id } = await plantEnv(node, slug, 'free')
  const streams = [await publish(env_id), await publish(env_id)]
  await publish((await plantEnv(node, other, 'free')).env_id)
  const change = (plan: 'starter' | 'self_host') =>
    changeOrg(node.deps, { org: slug, plan }, { correlation_id: 'c' })
  await change('starter')
  await until(() => set.size === 2)
  assert.equal(set, new Map(streams.map((stream) => [stream, 31.5 * DAY])))
  await change('self_host')
  await until(() => [...set.values()].every((seconds) => seconds === null))
  assert.is(set.size, 2)
})

renewing('is that of the newest plan also if the pass for a former one is slower', async () => {
  const slug = `o-${newId().slice(-12)}`
  const { env_id } = await plantEnv(node, slug, 'free')
  const streams = [await publish(env_id), await publish(env_id), await publish(env_id)]
  const own = new Map<string, number | null>()
  const slow = Promise.withResolvers<void>()
  const writes: (number | null)[] = []
  const deps = {
    ...node.deps,
    store: forwarding(node.store, {
      expire: async (stream, seconds) => {
        writes.push(seconds)
        if (writes.length === 2) await slow.promise
        own.set(stream, seconds)
      },
    }),
  }
  const renew = () => renewRetention(deps, { org_id: orgIdOf(slug), now: clock.now() })
  const change = (plan: 'starter' | 'self_host') =>
    changeOrg(node.deps, { org: slug, plan }, { correlation_id: 'c' })
  await change('starter')
  const former = renew()
  await until(() => writes.length === 2)
  await change('self_host')
  await renew()
  slow.resolve()
  await former
  assert.equal(own, new Map(streams.map((stream) => [stream, null])))
})
renewing.after(() => node.close())
renewing.run()
