import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { virtualClock } from '../../src/clock.ts'
import { Idempotency, REPLAYED_MS } from '../../src/commands/idempotency.ts'
import type { NewId } from '../../src/ids.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { DataKeys } from '../../src/secrets/dataKeys.ts'
import { isAppError } from '../../src/errors.ts'
import { openLogger } from '../../src/logger.ts'
import type { Reservation } from '../../src/content/fileQuota.ts'
import { Payloads } from '../../src/content/payloads.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { MasterKeys } from '../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../src/secrets/wrappedKeys.ts'
import { busy, mostPerTurn } from '../support/mostPerTurn.ts'
import { anyRoom, noRoom } from '../support/rooms.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

interface Context {
  store: EventStore
  /** The replies in the blobs. */
  kept: () => Promise<number>
  dataKeys: DataKeys
  /** Another process on the same event store. */
  node(
    holder: string,
    isGone?: (holder: string) => boolean,
    waitMs?: number,
    quotas?: { dataFor: () => Reservation },
    hasEarlierKeys?: boolean,
  ): Idempotency
}

const nodes = suite<Context>('requests with a key, on several nodes')

nodes.before.each(async (context) => {
  const store = openEventStore({ dir: tempDir() })
  const blobs = await openBlobs({ dir: tempDir() })
  const payloads = new Payloads(blobs)
  const masterKey = new Uint8Array(32)
  const keys = openAggregates(store).dataKeys
  const wrapped = new WrappedKeys(blobs, new MasterKeys([masterKey]))
  const dataKeys = new DataKeys({ keys, wrapped })
  const keyring = new Keyring(masterKey, dataKeys)
  Object.assign(context, { store, dataKeys })
  context.kept = async () => (await Array.fromAsync(blobs.list('replies/'))).length
  context.node = (
    holder,
    isGone = () => false,
    waitMs = 60_000,
    quotas = { dataFor: anyRoom },
    hasEarlierKeys = false,
  ) =>
    new Idempotency({
      store,
      aggregates: openAggregates(store),
      payloads,
      quotas,
      keyring,
      logger: openLogger(() => {}),
      holder,
      isGone,
      waitMs,
      stopping: new AbortController().signal,
      hasEarlierKeys,
    })
})
nodes.after.each(({ store }) => store.close())

const asked = (request: unknown = { n: 1 }, key = 'key') => ({
  key,
  scope: ['env', 'POST', '/v1/things'],
  request,
  cause: { env_id: 'env', correlation_id: 'r' },
})
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'fulfilled',
    (error: unknown) => (isAppError(error) ? error.code : String(error)),
  )
const never = () => Promise.reject(new Error('Expected not to be worked on'))

nodes('are worked on once; all simultaneous callers get the same answer', async ({ node }) => {
  let worked = 0
  const members = ['a', 'b', 'c'].map((holder) => node(holder))
  const answers = await Promise.all(
    [...members, ...members].map((member, index) =>
      member.once(asked(), async () => {
        worked++
        return { index }
      }),
    ),
  )
  assert.is(worked, 1)
  assert.is(new Set(answers.map(({ value }) => value.index)).size, 1)
  assert.is(answers.filter(({ replayed }) => !replayed).length, 1)
})

nodes(
  'keep no large answer for which there is no room, and work again with the same ids',
  async ({ node, kept }) => {
    const member = node('a', undefined, undefined, { dataFor: noRoom })
    const large = 'x'.repeat(100_000)
    const ask = () => member.once(asked(), async (ids) => ({ id: ids('thing'), large }))
    const [first, second] = [await ask(), await ask()]
    assert.equal(second, first)
    assert.not.ok(second.replayed)
    assert.is(await kept(), 0)
    const small = () => member.once(asked(1, 'small'), async () => 'small')
    await small()
    assert.ok((await small()).replayed)
  },
)

nodes('that svc 0.1.0 has answered get its reply until their key is free again', async ({ node }) => {
  const earlier = { ...asked(), scope: ['env', 'POST', '/v1/things'] }
  const later = {
    ...asked(),
    scope: ['env', 'credential', 'POST', '/v1/things'],
    earlierScope: earlier.scope,
  }
  const upgraded = node('b', undefined, undefined, undefined, true)
  const { value } = await node('a').once(earlier, async (ids) => ({ id: ids('thing') }))
  assert.equal(await upgraded.once(later, never), { value, replayed: true })
  assert.is(await codeOf(upgraded.once({ ...later, request: 'other' }, never)), 'idempotency_key_reused')
  virtualClock.set(Date.now() + REPLAYED_MS + 1)
  try {
    assert.not.ok((await upgraded.once(later, async () => 'again')).replayed)
  } finally {
    virtualClock.set(null)
  }
})

nodes('whose answer was erased are worked on again with the same ids', async ({ node, dataKeys }) => {
  const ask = (holder: string) => node(holder).once(asked(), async (ids) => ({ id: ids('thing') }))
  const { value } = await ask('a')
  await dataKeys.destroy({ env_id: 'env' }, { final: false }, { correlation_id: 'c' })
  assert.is(await codeOf(node('b').once(asked({ n: 2 }), never)), 'idempotency_key_reused')
  const again = await Promise.all([ask('a'), ask('b'), ask('b')])
  assert.equal(
    again.map((each) => each.value),
    [value, value, value],
  )
  assert.is(again.filter(({ replayed }) => !replayed).length, 1)
  assert.equal(await node('c').once(asked(), never), { value, replayed: true })
})

nodes('are answered by a node that has not seen the first request', async ({ node }) => {
  await node('a').once(asked(), async () => 'answer')
  assert.equal(await node('b').once(asked(), never), { value: 'answer', replayed: true })
})

nodes('are refused while a live node works on them', async ({ node }) => {
  const done = Promise.withResolvers<string>()
  const begun = Promise.withResolvers<void>()
  const first = node('a').once(asked(), () => {
    begun.resolve()
    return done.promise
  })
  await begun.promise
  assert.is(await codeOf(node('b', () => false, 100).once(asked(), never)), 'conflict')
  done.resolve('answer')
  assert.is((await first).value, 'answer')
})

nodes('of a node that died are taken over with the same ids', async ({ node }) => {
  const ids: string[] = []
  const begun = Promise.withResolvers<void>()
  const work = (newId: NewId) => {
    ids.push(newId('thing'))
    begun.resolve()
    return ids.length === 1 ? new Promise<string>(() => {}) : Promise.resolve('answer')
  }
  void node('dead').once(asked(), work)
  await begun.promise
  const later = await node('b', (holder) => holder === 'dead').once(asked(), work)
  assert.equal(later, { value: 'answer', replayed: false })
  assert.is(ids.length, 2)
  assert.is(ids[0], ids[1])
})

nodes('that were taken over from a paused node have one answer', async ({ node }) => {
  const pause = Promise.withResolvers<string>()
  const begun = Promise.withResolvers<void>()
  const paused = node('paused').once(asked(), () => {
    begun.resolve()
    return pause.promise
  })
  await begun.promise
  await node('b', () => true).once(asked(), async () => 'theirs')
  pause.resolve('ours')
  assert.equal(await paused, { value: 'theirs', replayed: true })
})

nodes('that failed are worked on again, with the same ids', async ({ node }) => {
  const ids: string[] = []
  const failing = node('a').once(asked(), (newId) => {
    ids.push(newId('thing'))
    return Promise.reject(new Error('down'))
  })
  assert.is(await codeOf(failing), 'Error: down')
  const again = await node('b').once(asked(), async (newId) => newId('thing'))
  assert.equal(again, { value: ids[0] ?? '', replayed: false })
})

nodes(
  'are distinguished from other requests with the same key, and from other environments',
  async ({ node }) => {
    await node('a').once(asked(), async () => 1)
    assert.is(await codeOf(node('b').once(asked({ n: 2 }), never)), 'idempotency_key_reused')
    assert.is((await node('b').once(asked({ n: 2 }, 'other'), async () => 2)).value, 2)
    const elsewhere = { ...asked({ n: 2 }), scope: ['env', 'POST', '/v1/others'] }
    assert.is((await node('b').once(elsewhere, async () => 3)).value, 3)
  },
)

nodes('are the same in any order of their fields, and in one order of their lists', async ({ node }) => {
  const value = await node('a').once(asked([{ b: [{ y: 1, x: 2 }], a: 1 }]), async () => 'answer')
  for (const again of [[{ a: 1, b: [{ x: 2, y: 1 }] }], [{ b: [{ y: 1, x: 2 }], a: 1 }]])
    assert.equal(await node('b').once(asked(again), never), { ...value, replayed: true })
  for (const other of [
    [{ a: 1, b: [{ x: 1, y: 2 }] }],
    [{ a: [{ x: 2, y: 1 }], b: 1 }],
    [{ a: 1 }, { b: 1 }],
  ])
    assert.is(await codeOf(node('b').once(asked(other), never)), 'idempotency_key_reused')
  await node('a').once(asked([1, 2], 'list'), async () => 'answer')
  assert.is(await codeOf(node('b').once(asked([2, 1], 'list'), never)), 'idempotency_key_reused')
})

nodes('derive different ids for each thing and each key', async ({ node }) => {
  const idsOf = async (key: string) =>
    (await node('a').once(asked(1, key), async (newId) => [newId('a'), newId('b')])).value
  assert.is(new Set([...(await idsOf('one')), ...(await idsOf('two'))]).size, 4)
})

nodes('store no answer in plain text (I6), large or small', async ({ node, store }) => {
  const secret = 'planted-'.repeat(20_000)
  const answer = await node('a').once(asked(), async () => ({ token: secret }))
  assert.is(answer.value.token, secret)
  await node('a').once(asked(1, 'small'), async () => ({ token: 'planted-token' }))
  assert.equal(await node('b').once<unknown>(asked(), never), { value: answer.value, replayed: true })
  for await (const { events, caughtUp } of store.subscribe({ signal: AbortSignal.timeout(5000) })) {
    assert.not.match(JSON.stringify(events), /planted/)
    if (caughtUp) break
  }
})

nodes('make one fingerprint of a large request in a turn of the event loop', async ({ node }) => {
  const most = await mostPerTurn(async (step) => {
    const slow = new (class {
      toJSON() {
        busy(2)
        step()
        return 'slow'
      }
    })()
    await node('a').once(asked({ z: 'x'.repeat(70_000), a: slow }), async () => 'done')
  })
  assert.is(most, 1)
})

nodes.run()
