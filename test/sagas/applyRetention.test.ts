import * as assert from 'uvu/assert'
import type { EnvCause, Metadata } from '../../src/events/event.ts'
import type { Plan } from '../../src/events/org.ts'
import type { Delivery, EventStore } from '../../src/ports/eventStore.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { clock, virtualClock } from '../../src/clock.ts'
import { silent } from '../../src/logger.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { applyRetention, applyRetentionCore } from '../../src/sagas/applyRetention.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { AppError } from '../../src/errors.ts'
import { reacting } from './reacting.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { now, type Node, openNode } from '../support/openNode.ts'

const saga = ({ aggregates, views, signal }: Node, store: EventStore): void =>
  void runSaga(
    applyRetention({ store, aggregates, directory: views.directory }),
    { logger: silent, clock },
    signal,
  )

const rule = suite('the rules of retention')
const DAY = 86_400
const deliveryOf = (event: DomainEvent, at: { revision?: number; stream?: string }): Delivery => ({
  event: {
    id: 'fact',
    stream: streamOf.stream('s'),
    event,
    revision: 0,
    ...at,
    cursor: '1',
    at: now,
    metadata: { correlation_id: 'c' },
  },
  ack() {},
  retry() {},
})
const kept = (
  event: DomainEvent,
  plan: Plan | undefined,
  seconds: number | null,
  at: { revision?: number; stream?: string } = {},
) => {
  const delivery = deliveryOf(event, at)
  reacting(applyRetentionCore)
    .given()
    .when({ delivery, plan })
    .at(0)
    .then({ do: 'carryOut', key: 'fact', command: { delivery, seconds } })
}
const created: DomainEvent = { type: 'StreamCreated', stream_id: 's' }
const logged = (part: number): DomainEvent => ({ type: 'RunLogged', run_id: 'r', part, lines: [] })

rule('a stream is kept for the time of the plan, and for as long as its documents may remain', () => {
  kept(created, 'free', 8.5 * DAY)
  kept(created, 'starter', 31.5 * DAY)
})
rule('a stream without a limit is kept permanently', () => {
  kept(created, 'self_host', null)
  kept(created, undefined, null)
})
rule('the first part of the output of a run sets how long all of it is kept', () => {
  kept(logged(0), 'free', 8.5 * DAY)
  kept(logged(1), 'free', null)
})
rule('the first place of an expired fact sets how long the rest of its stream is kept', () => {
  kept({ type: 'FactExpired' }, 'free', 8.5 * DAY)
  kept({ type: 'FactExpired' }, 'free', null, { revision: 1 })
  kept({ type: 'FactExpired' }, undefined, 2 * DAY, { stream: streamOf.request('hash') })
})
rule('a reply under a key is kept two days, whatever the plan', () => {
  const claimed = {
    type: 'RequestClaimed',
    claim_id: 'c',
    attempt: 1,
    fingerprint: 'f',
    holder: 'h',
  } as const
  kept({ ...claimed, at: now, until: now }, undefined, 2 * DAY, { stream: streamOf.request('hash') })
})
rule.run()

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
  const told: [string, number | null][] = []
  const store = forwarding(node.store, {
    expire: (stream, seconds) => Promise.resolve(void told.push([stream, seconds])),
  })
  const free = await streamUnder(node, 'free')
  await streamUnder(node, 'self_host') // unlimited
  saga(node, store)
  await until(() => told.length === 1)
  const starter = await streamUnder(node, 'starter')
  await until(() => told.length === 2)
  assert.equal(told, [
    [free, 8.5 * DAY],
    [starter, 31.5 * DAY],
  ])
})

const envCauseOf = async ({ store }: Node, stream: string): Promise<EnvCause> => {
  const [first] = await Array.fromAsync(store.read(stream, { limit: 1 }))
  return first?.metadata as EnvCause
}

/** Deletes the environment of a stream. Resolves with a function that deletes its organization. */
const deleteEnvOf = async (node: Node, stream: string) => {
  const { store, aggregates } = node
  const metadata = await envCauseOf(node, stream)
  const { env_id } = metadata
  await aggregates.envs.handle(streamOf.env(env_id), { type: 'DeleteEnv', env_id }, metadata)
  const [env] = await Array.fromAsync(store.read(streamOf.env(env_id), { limit: 1 }))
  if (env?.event.type !== 'EnvCreated') throw new Error('expected an environment')
  const { org_id } = env.event
  const deletion = { type: 'DeleteOrg', org_id, env_ids: [env_id] } as const
  return () => aggregates.orgs.handle(streamOf.org(org_id), deletion, metadata)
}

keeping('removes the facts of a deleted environment, also when the log was restored', async ({ node }) => {
  const [free, starter, gone, kept, importing] = [
    await streamUnder(node, 'free'),
    await streamUnder(node, 'starter'),
    await streamUnder(node, 'self_host'),
    await streamUnder(node, 'self_host'),
    await streamUnder(node, 'free'),
  ]
  for (const stream of [free, starter, kept]) await deleteEnvOf(node, stream)
  await (
    await deleteEnvOf(node, gone)
  )()
  const cause = await envCauseOf(node, importing)
  const { env_id } = cause
  const begun = { type: 'BeginImport', env_id, empty: true, import_id: newId() } as const
  await node.aggregates.envs.handle(streamOf.env(env_id), begun, cause)
  await node.views.directory.reach(await node.store.head())
  const told = new Map<string, number | null>()
  const expire = async (stream: string, seconds: number | null) => {
    await node.store.expire(stream, seconds)
    told.set(stream, seconds)
  }
  const last = await streamUnder(node, 'free')
  saga(node, forwarding(node.store, { expire }))
  await until(() => told.has(last))
  told.delete(last)
  assert.equal(
    [...told],
    [
      [free, 8.5 * DAY],
      [starter, 31.5 * DAY],
      [gone, 8.5 * DAY],
    ],
  )
  virtualClock.set(clock.now() + 9 * DAY * 1000)
  try {
    await node.store.scavenge?.()
    const streams = new Set<string>()
    for await (const { events, caughtUp } of node.store.subscribe({
      types: ['EventPublished'],
      signal: node.signal,
    })) {
      for (const { stream } of events) streams.add(stream)
      if (caughtUp) break
    }
    assert.equal(streams, new Set([starter, kept, importing]))
  } finally {
    virtualClock.set(null)
  }
})

keeping('is set again for streams of an earlier version, which kept them for less time', async ({ node }) => {
  const told: [string, number | null][] = []
  const stream = await streamUnder(node, 'free')
  for await (const delivery of node.store.consume('retentions', {
    types: ['StreamCreated'],
    signal: node.signal,
  })) {
    await node.store.expire(stream, 7 * DAY)
    delivery.ack()
    break
  }
  const store = forwarding(node.store, {
    expire: (stream, seconds) => Promise.resolve(void told.push([stream, seconds])),
  })
  saga(node, store)
  await until(() => told.length === 1)
  assert.equal(told, [[stream, 8.5 * DAY]])
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
      const command = { type: 'LogLines', run_id, writer: 'w', part, lines } as const
      await node.aggregates.runLogs.handle(streamOf.runLog(run_id), command, metadata)
    }
  }
  const last = await streamUnder(node, 'free')
  saga(node, store)
  await until(() => told.includes(last))
  assert.equal(told.toSorted(), [streamOf.runLog('one'), streamOf.runLog('two'), svcStream, last].toSorted())
})

keeping('is two days for the answer under a key, whatever the plan', async ({ node }) => {
  const told: [string, number | null][] = []
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
  saga(node, store)
  await until(() => told.length === 1)
  assert.equal(told, [[stream, 2 * 86_400]])
})

keeping(
  'acknowledges a stream whose retention cannot be set, so that the next ones have theirs',
  async ({ node }) => {
    const told: string[] = []
    const first = await streamUnder(node, 'free')
    const store = forwarding(node.store, {
      expire: (stream) =>
        stream === first
          ? Promise.reject(new AppError('bad_request', 'refused'))
          : Promise.resolve(void told.push(stream)),
    })
    saga(node, store)
    const second = await streamUnder(node, 'free')
    await until(() => told.includes(second))
  },
)
keeping.run()
