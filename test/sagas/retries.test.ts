import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { AppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import { START } from '../../src/events/event.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { retries } from '../../src/sagas/retries.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { cause, failRun, now, type Node, openNode, startRun } from '../support/openNode.ts'

const begun = ['StreamCreated', 'EventPublished', 'EventHandled', 'RunStarted']
const soon = { attempts: 3, delay: 20 }
const saga = (node: Node, from = START) =>
  retries(
    { store: node.store, aggregates: node.aggregates, runs: node.views.runs, alarms: node.alarms },
    from,
    node.signal,
  )

const retry = suite<{ node: Node }>('a retry')
retry.before.each(async (context) => {
  context.node = await openNode()
})
retry.after.each(({ node }) => node.close())

retry('follows a failure when it is due', async ({ node }) => {
  void saga(node)
  const run = await startRun(node, 'w', soon)
  await failRun(node, run, 'w', clock.now())
  await until(async () => (await node.typesIn(run.stream_id)).length === 7)
  assert.equal(await node.typesIn(run.stream_id), [...begun, 'RunFailed', 'RunRetried', 'RunRequested'])
  assert.is(node.alarms.size, 0)
})

retry('does not come before its time', async ({ node }) => {
  void saga(node)
  const [late, early] = [
    await startRun(node, 'w', { attempts: 1, delay: 3_600_000 }),
    await startRun(node, 'w', soon),
  ]
  await failRun(node, late, 'w', clock.now())
  await failRun(node, early, 'w', clock.now())
  await until(async () => (await node.typesIn(early.stream_id)).includes('RunRequested'))
  assert.equal(await node.typesIn(late.stream_id), [...begun, 'RunFailed'])
  assert.is(node.alarms.size, 1)
})

retry('of a cancelled run does not come', async ({ node }) => {
  void saga(node)
  const run = await startRun(node, 'w', { attempts: 1, delay: 3_600_000 })
  await failRun(node, run, 'w', clock.now())
  await until(() => node.alarms.size === 1)
  await node.aggregates.streams.handle(
    streamOf.stream(run.stream_id),
    { type: 'CancelRun', run_id: run.run_id, now },
    cause,
  )
  await until(() => node.alarms.size === 0)
})

retry('comes once, however many nodes wait for it', async ({ node }) => {
  for (let i = 0; i < 3; i++) void saga(node)
  const other = new Alarms()
  const mine = { store: node.store, aggregates: node.aggregates, runs: node.views.runs }
  void retries({ ...mine, alarms: other }, START, node.signal)
  const runs = await Promise.all(Array.from({ length: 20 }, () => startRun(node, 'w', soon)))
  await Promise.all(runs.map((run) => failRun(node, run, 'w', clock.now())))
  await until(() => node.alarms.size + other.size > 0)
  await until(() => node.alarms.size + other.size === 0)
  for (const { stream_id } of runs) {
    await until(async () => (await node.typesIn(stream_id)).includes('RunRequested'))
    assert.equal((await node.typesIn(stream_id)).slice(5), ['RunRetried', 'RunRequested'])
  }
  other.close()
})

retry('that was due while the service was down starts after the restart, each one', async ({ node }) => {
  const runs = await Promise.all(Array.from({ length: 250 }, () => startRun(node, 'w', soon)))
  await Promise.all(runs.map((run) => failRun(node, run, 'w', clock.now())))
  await node.close()
  const again = await openNode(node.dir)
  await again.views.settled()
  // As a read model on the network: others get their turn during a query.
  const slow = {
    ...again.views.runs,
    find: async (query: Parameters<typeof again.views.runs.find>[0]) => {
      await until(() => again.views.settled().then(() => true))
      return again.views.runs.find(query)
    },
  }
  void retries(
    { store: again.store, aggregates: again.aggregates, runs: slow, alarms: again.alarms },
    await again.store.head(),
    again.signal,
  )
  for (const { stream_id } of runs)
    await until(async () => (await again.typesIn(stream_id)).includes('RunRequested'))
  await again.close()
})
retry.run()

const failing = suite('a retry that cannot be stored')
const run = { run_id: 'r', stream_id: 's', env_id: 'env', retry_at: now }
const runs = { find: () => Promise.resolve({ items: [run], total: 1 }) } as unknown as Node['views']['runs']

failing('is tried again, without haste', async () => {
  let calls = 0
  let down = true
  const handle = () => {
    calls++
    return down ? Promise.reject(new AppError('unavailable', 'down')) : Promise.resolve({})
  }
  const node = await openNode()
  const aggregates = { streams: { handle } } as unknown as Node['aggregates']
  void retries({ store: node.store, aggregates, runs, alarms: node.alarms }, START, node.signal)
  await until(() => calls > 0)
  for (let i = 0; i < 50; i++) await new Promise(setImmediate)
  assert.is(calls, 1)
  down = false
  await until(() => calls === 2)
  await node.close()
})

failing('after the end sets no alarm', async () => {
  const node = await openNode()
  const rejects: ((error: Error) => void)[] = []
  const handle = () => new Promise((_, reject) => void rejects.push(reject))
  const aggregates = { streams: { handle } } as unknown as Node['aggregates']
  void retries({ store: node.store, aggregates, runs, alarms: node.alarms }, START, node.signal)
  await until(() => rejects.length === 1)
  await node.close()
  rejects[0]?.(new AppError('unavailable', 'closed'))
  await new Promise(setImmediate)
  assert.is(node.alarms.size, 0)
})
failing.run()
