import { setImmediate as turn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { ChildEndings } from '../../../src/commands/runs/childEndings.ts'
import { retryRun } from '../../../src/commands/runs/retryRun.ts'
import { retryIdOf } from '../../../src/domain/run.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { cause, openNode, startRun } from '../../support/openNode.ts'
import { suite } from '../../support/suite.ts'

const node = await openNode()
const { store } = node
const streams = node.aggregates.streams
const worker_id = newId()

/** A run whose child runs are requested, claimed and ended. */
const openParent = async () => {
  const { stream_id, run_id: parent_run_id } = await startRun(node, worker_id)
  const stream = streamOf.stream(stream_id)
  const request = async (retry?: RunPlan['retry']) => {
    const plan: RunPlan = {
      run_id: newId(),
      stream_id,
      run_type: 'run',
      build_id: 'build',
      project_id: 'project',
      project_name: 'shop',
      target: { ns: 'orders', var: 'child' },
      attempt: 1,
      parent_run_id,
      ...(retry && { retry }),
    }
    const command = { type: 'RequestRun', env_id: 'env', plan, create: false } as const
    const input = { kind: 'args', value: [] } as const
    const { firstRevision: after } = await streams.handle(stream, { ...command, input }, cause)
    return { run_id: plan.run_id, stream_id, after }
  }
  const now = new Date().toISOString()
  const claim = (run_id: string) =>
    streams.handle(stream, { type: 'ClaimRun', run_id, worker_id, now }, cause)
  const succeed = async (run_id: string) => {
    await claim(run_id)
    await streams.handle(stream, { type: 'SucceedRun', run_id, worker_id, now, result: { value: 1 } }, cause)
  }
  const fail = async (run_id: string) => {
    await claim(run_id)
    const error = { code: 'user_error', message: 'broke' }
    await streams.handle(stream, { type: 'FailRun', run_id, worker_id, now, error }, cause)
  }
  return { stream_id, request, succeed, fail }
}

/** A store that counts the facts that its followers receive. */
const countingReads = () => {
  const counted = { facts: 0 }
  const follow: EventStore['follow'] = async function* (stream, options) {
    for await (const batch of store.follow(stream, options)) {
      counted.facts += batch.events.length
      yield batch
    }
  }
  return { counted, follow }
}
const never = new AbortController().signal

const awaiting = suite('awaited child runs')
awaiting('of one stream are read together: a fact is not read once for each of them', async () => {
  const parent = await openParent()
  const { counted, follow } = countingReads()
  const endings = new ChildEndings({ follow })
  const children = await Promise.all(Array.from({ length: 100 }, () => parent.request()))
  const ends = Promise.all(children.map((child) => endings.of(child, never)))
  await Promise.all(children.map(({ run_id }) => parent.succeed(run_id)))
  assert.equal(
    (await ends).map((end) => end?.run_id),
    children.map(({ run_id }) => run_id),
  )
  const facts = (await node.typesIn(parent.stream_id)).length
  assert.ok(counted.facts < 10 * facts, `${counted.facts} reads of ${facts} facts`)
})
awaiting('end with the last of their retries', async () => {
  const parent = await openParent()
  const endings = new ChildEndings(store)
  const child = await parent.request({ attempts: 2, delay: 1 })
  const end = endings.of(child, never)
  await parent.fail(child.run_id)
  await retryRun(node, child, { cause })
  await parent.succeed(retryIdOf(child.run_id))
  const ending = await end
  assert.equal([ending?.type, ending?.run_id], ['RunSucceeded', retryIdOf(child.run_id)])
})
awaiting('are found when the reader has already passed their end', async () => {
  const parent = await openParent()
  const endings = new ChildEndings(store)
  const [open, late, mark] = [await parent.request(), await parent.request(), await parent.request()]
  const stays = endings.of(open, never)
  const marked = endings.of(mark, never)
  await parent.succeed(late.run_id)
  await parent.succeed(mark.run_id)
  await marked // the reader is behind the end of `late`
  assert.is((await endings.of(late, never))?.run_id, late.run_id)
  await parent.succeed(open.run_id)
  assert.is((await stays)?.run_id, open.run_id)
})
awaiting('are given up with their signal, and the others are not', async () => {
  const parent = await openParent()
  const endings = new ChildEndings(store)
  const [left, kept] = [await parent.request(), await parent.request()]
  const stop = new AbortController()
  const given = endings.of(left, stop.signal)
  const end = endings.of(kept, never)
  stop.abort()
  assert.is(await given, null)
  assert.is(await endings.of(left, stop.signal), null)
  await parent.succeed(kept.run_id)
  assert.is((await end)?.run_id, kept.run_id)
})
awaiting('are not read any more when all are given up while one that is behind is to be read', async () => {
  const parent = await openParent()
  const left = Promise.withResolvers<void>()
  let reads = 0
  const follow: EventStore['follow'] = async function* (stream, options) {
    reads++
    try {
      yield* store.follow(stream, options)
    } finally {
      left.resolve()
    }
  }
  const endings = new ChildEndings({ follow })
  const [late, open, mark] = [await parent.request(), await parent.request(), await parent.request()]
  const stop = new AbortController()
  const given = [endings.of(open, stop.signal)]
  const marked = endings.of(mark, stop.signal)
  await parent.succeed(mark.run_id)
  await marked // the reader has passed the request of `late`
  given.push(endings.of(late, stop.signal))
  stop.abort()
  assert.equal(await Promise.all(given), [null, null])
  await left.promise
  await turn()
  assert.is(reads, 1)
})
awaiting('are read again after all of a stream have ended', async () => {
  const parent = await openParent()
  const endings = new ChildEndings(store)
  for (const child of [await parent.request(), await parent.request()]) {
    const end = endings.of(child, never)
    await parent.succeed(child.run_id)
    assert.is((await end)?.run_id, child.run_id)
  }
})
awaiting('fail with the error of a read', async () => {
  const parent = await openParent()
  const broken = new Error('damaged')
  const follow: EventStore['follow'] = () => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(broken) }),
  })
  const endings = new ChildEndings({ follow })
  const child = await parent.request()
  const failed = await endings.of(child, never).catch((error: unknown) => error)
  assert.is(failed, broken)
})
awaiting('end without an ending when the store is closed', async () => {
  const closing = await openNode()
  const { stream_id, run_id } = await startRun(closing, worker_id)
  const end = new ChildEndings(closing.store).of({ run_id, stream_id, after: 1 }, never)
  await closing.close()
  assert.is(await end, null)
})
awaiting.after(() => node.close())
awaiting.run()
