import * as assert from 'uvu/assert'
import type { Metadata } from '../../src/events/event.ts'
import type { Plan } from '../../src/events/org.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { retention } from '../../src/sagas/retention.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { now, type Node, openNode } from '../support/openNode.ts'

const keeping = suite<{ node: Node }>('retention')
keeping.before.each(async (context) => {
  context.node = await openNode()
})
keeping.after.each(({ node }) => node.close())

/** A new svc stream of an organization of that plan. */
const streamUnder = async ({ store, aggregates }: Node, plan: Plan): Promise<string> => {
  const [org_id, env_id, stream_id] = [newId(), newId(), newId()]
  const metadata = { env_id, correlation_id: env_id }
  const org = { type: 'OrgCreated', org_id, slug: org_id, name: plan, plan } as const
  await store.append(streamOf.org(org_id), [{ id: newId(), event: org, metadata }], 'none')
  const env = { type: 'EnvCreated', env_id, org_id, name: 'dev' } as const
  await store.append(streamOf.env(env_id), [{ id: newId(), event: env, metadata }], 'none')
  const publish = { type: 'PublishEvent', stream_id, env_id, event_id: newId(), event_type: 'x' } as const
  const rest = { data: { value: null }, source: 'api', create: true, now }
  await aggregates.streams.handle(streamOf.stream(stream_id), { ...publish, ...rest }, metadata)
  return streamOf.stream(stream_id)
}

keeping('is set for each stream, by the plan of its organization, once', async ({ node }) => {
  const told: [string, number][] = []
  const store = forwarding(node.store, {
    expire: (stream, seconds) => Promise.resolve(void told.push([stream, seconds])),
  })
  const free = await streamUnder(node, 'free')
  await streamUnder(node, 'self_host') // unlimited
  void retention({ store, directory: node.views.directory }, node.signal)
  await until(() => told.length === 1)
  const starter = await streamUnder(node, 'starter')
  await until(() => told.length === 2)
  assert.equal(told, [
    [free, 7 * 86_400],
    [starter, 30 * 86_400],
  ])
})

keeping('is set for the output of a run, once', async ({ node }) => {
  const told: string[] = []
  const store = forwarding(node.store, {
    expire: (stream) => Promise.resolve(void told.push(stream)),
  })
  const svcStream = await streamUnder(node, 'free')
  const [created] = await Array.fromAsync(node.store.read(svcStream, { limit: 1 }))
  const metadata = created?.metadata as Metadata
  for (const run_id of ['one', 'two']) {
    for (const part of [0, 1]) {
      const lines = [{ at: now, source: 'stdout', text: 'x' }] as const
      const command = { type: 'LogLines', run_id, part, lines } as const
      await node.aggregates.runLogs.handle(streamOf.runLog(run_id), command, metadata)
    }
  }
  const last = await streamUnder(node, 'free')
  void retention({ store, directory: node.views.directory }, node.signal)
  await until(() => told.includes(last))
  assert.equal(told.toSorted(), [streamOf.runLog('one'), streamOf.runLog('two'), svcStream, last].toSorted())
})

keeping('is two days for the answer under a key, whatever the plan', async ({ node }) => {
  const told: [string, number][] = []
  const store = forwarding(node.store, {
    expire: (stream, seconds) => Promise.resolve(void told.push([stream, seconds])),
  })
  const stream = streamOf.request('hash')
  const claim = {
    type: 'RequestClaimed',
    claim_id: newId(),
    attempt: 1,
    fingerprint: 'f',
    holder: 'h',
  } as const
  const metadata = { env_id: 'env', correlation_id: 'c' }
  const event = { ...claim, at: now, until: now }
  await node.store.append(stream, [{ id: newId(), event, metadata }], 'none')
  void retention({ store, directory: node.views.directory }, node.signal)
  await until(() => told.length === 1)
  assert.equal(told, [[stream, 2 * 86_400]])
})

keeping.run()
