import * as assert from 'uvu/assert'
import { openHints } from '../../src/adapters/embedded/hints.ts'
import { Authenticator } from '../../src/access/authenticator.ts'
import type { Credential } from '../../src/access/credential.ts'
import { useServiceKey } from '../../src/commands/credentials/useServiceKey.ts'
import { clock, isoOf, wallNow } from '../../src/clock.ts'
import { AppError, isAppError } from '../../src/errors.ts'
import type { Permissions } from '../../src/events/org.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { newApiToken, newIssuedToken, parseApiToken } from '../../src/access/tokens.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { cause, type Node, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const keyring = new Keyring(new Uint8Array(32).fill(7))

interface Context {
  node: Node
  /** Lets the nodes no longer trust the credentials that they know. */
  endTrust(): void
  /** Suspends the machine of the nodes: their monotonic clock stands still. */
  suspend(): void
  /** Another node: only the log informs it about the changes of the first one. */
  open(store?: EventStore): Authenticator
}

const nodes = suite<Context>('credentials on several nodes')

nodes.before(async (context) => {
  const node = await openNode()
  const { views, aggregates, signal } = node
  let laterMs = 0
  let suspendedMs = 0
  const open = (store = node.store): Authenticator => {
    const authenticator = new Authenticator({
      store,
      views,
      keyring,
      hints: openHints(),
      onUse: (credential) => useServiceKey({ aggregates }, credential),
      monotonic: () => clock.monotonic() + laterMs,
      wall: () => wallNow() + laterMs + suspendedMs,
    })
    void authenticator.watch(signal).catch(() => {})
    return authenticator
  }
  const [endTrust, suspend] = [() => (laterMs += 1100), () => (suspendedMs += 60_000)]
  Object.assign(context, { node, open, endTrust, suspend })
})
nodes.after(({ node }) => node.close())

const newApiKey = async ({ aggregates }: Node) => {
  const token = newApiToken(newId())
  const { api_key_id = '', secret = '' } = parseApiToken(token) ?? {}
  const mac = keyring.macOf(secret)
  const permissions: Permissions = { '*:*': ['*'] }
  await aggregates.apiKeys.handle(
    streamOf.key(api_key_id),
    { type: 'CreateApiKey', api_key_id, env_id: 'env', name: 'k', mac, permissions },
    cause,
  )
  return { api_key_id, token }
}

/** `time`: by the clock of the node that issues it. */
const newSession = async ({ aggregates }: Node, api_key_id: string, time = clock.now()) => {
  const session_id = newId()
  const { token, secret } = newIssuedToken('session', session_id)
  const [now, expires_at] = [isoOf(time), isoOf(time + 60_000)]
  const session = { session_id, mac: keyring.macOf(secret), permissions: { 'run:*': ['read'] }, expires_at }
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'CreateSession', api_key_id, now, session },
    cause,
  )
  return { session_id, token }
}

const newServiceKey = async ({ aggregates }: Node, api_key_id: string) => {
  const service_key_id = newId()
  const { token, secret } = newIssuedToken('service-key', service_key_id)
  const permissions = { 'run:*': ['read'] }
  const key = {
    service_key_id,
    name: 'k',
    description: '',
    mac: keyring.macOf(secret),
    permissions,
    expires_at: null,
  }
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'CreateServiceKey', api_key_id, now: clock.iso(), key },
    cause,
  )
  return { token }
}

const revoke = ({ aggregates }: Node, api_key_id: string, session_id: string) =>
  aggregates.issued.handle(
    streamOf.issued(api_key_id),
    { type: 'RevokeSession', api_key_id, session_id, now: clock.iso() },
    cause,
  )

/** Resolves with the credential, or with the code of the refusal. */
const asked = async (authenticator: Authenticator, token: string): Promise<Credential | string> => {
  try {
    return await authenticator.authenticate(token)
  } catch (error) {
    return isAppError(error) ? error.code : String(error)
  }
}
const isKnown = (answer: Credential | string) => typeof answer !== 'string'

nodes('hold everywhere as soon as they were made', async ({ node, open }) => {
  const there = open()
  for (let n = 0; n < 20; n++) {
    const { api_key_id, token } = await newApiKey(node)
    assert.ok(isKnown(await asked(there, token)))
    assert.ok(isKnown(await asked(there, (await newSession(node, api_key_id)).token)))
  }
})

nodes('that were ended on one are refused on the others, without any hint', async ({ node, open }) => {
  const there = open()
  const { api_key_id, token } = await newApiKey(node)
  const session = await newSession(node, api_key_id)
  assert.ok(isKnown(await asked(there, session.token)))
  await revoke(node, api_key_id, session.session_id)
  await until(async () => (await asked(there, session.token)) === 'unauthorized')
  assert.ok(isKnown(await asked(there, token)))

  const other = await newSession(node, api_key_id)
  assert.ok(isKnown(await asked(there, other.token)))
  const changes = { enabled: false }
  await node.aggregates.apiKeys.handle(
    streamOf.key(api_key_id),
    { type: 'ChangeApiKey', api_key_id, changes },
    cause,
  )
  await until(async () => (await asked(there, token)) === 'unauthorized')
  assert.is(await asked(there, other.token), 'unauthorized')
})

nodes('that one recorded as expired are refused on the others', async ({ node, open }) => {
  const there = open()
  const { api_key_id, token } = await newApiKey(node)
  const session = await newSession(node, api_key_id)
  assert.ok(isKnown(await asked(there, session.token)))
  await newSession(node, api_key_id, clock.now() + 120_000)
  await until(async () => (await asked(there, session.token)) === 'unauthorized')
  assert.ok(isKnown(await asked(there, token)))
})

nodes(
  'issued under a narrowed API key may no more than it, also when that came first',
  async ({ node, open }) => {
    const there = open()
    const { api_key_id, token } = await newApiKey(node)
    const session = await newSession(node, api_key_id)
    const may = async (of: string) =>
      ((await asked(there, of)) as Credential).permissions.allows('run', 'read')
    assert.ok(await may(session.token))
    const changes = { permissions: { 'env:*': ['read'] } }
    await node.aggregates.apiKeys.handle(
      streamOf.key(api_key_id),
      { type: 'ChangeApiKey', api_key_id, changes },
      cause,
    )
    await until(async () => !(await may(token)))
    assert.not.ok(await may(session.token))
  },
)

/** A stream of the credential, which the node may end. */
const held = (there: Authenticator, credential: Credential): AbortSignal => {
  const gone = new AbortController()
  there.hold({
    credential,
    gone: gone.signal,
    end: () => gone.abort(),
    mayStill: () => Promise.resolve(true),
  })
  return gone.signal
}

nodes('end the streams of the others too', async ({ node, open }) => {
  const there = open()
  const { api_key_id } = await newApiKey(node)
  const session = await newSession(node, api_key_id)
  const credential = (await asked(there, session.token)) as Credential
  const gone = held(there, credential)
  await revoke(node, api_key_id, session.session_id)
  await until(() => gone.aborted)
})

nodes('that ended before their stream began do not get a stream', async ({ node, open }) => {
  const there = open()
  const { api_key_id } = await newApiKey(node)
  const session = await newSession(node, api_key_id)
  const credential = (await asked(there, session.token)) as Credential
  await revoke(node, api_key_id, session.session_id)
  await until(async () => (await asked(there, session.token)) === 'unauthorized')
  const gone = held(there, credential)
  await until(() => gone.aborted)
})

/** A store whose subscriptions and heads can be held. A held head is that of before. */
const holding = (store: EventStore) => {
  const gates: (() => void)[] = []
  const held = { subscriptions: false, heads: false }
  const pass = (isHeld: boolean) => isHeld && new Promise<void>((resolve) => gates.push(resolve))
  let heads = 0
  return {
    store: Object.assign(Object.create(store) as EventStore, {
      head: async () => {
        const head = await store.head()
        heads++
        await pass(held.heads)
        return head
      },
      subscribe: async function* (options: Parameters<EventStore['subscribe']>[0]) {
        for await (const batch of store.subscribe(options)) {
          await pass(held.subscriptions)
          yield batch
        }
      },
    }),
    held,
    gates,
    heads: () => heads,
    release: () => {
      held.subscriptions = held.heads = false
      for (const open of gates.splice(0)) open()
    },
  }
}

for (const [when, end] of [
  ['', 'endTrust'],
  [' after the machine was suspended', 'suspend'],
] as const)
  nodes(
    `wait while the log cannot be followed${when}, and are refused if it ended them meanwhile`,
    async ({ node, open, ...ending }) => {
      const { store, held, gates, heads, release } = holding(node.store)
      const there = open(store)
      const { api_key_id } = await newApiKey(node)
      const session = await newSession(node, api_key_id)
      assert.ok(isKnown(await asked(there, session.token)))
      held.subscriptions = true
      await revoke(node, api_key_id, session.session_id)
      await until(() => gates.length > 0)
      ending[end]()
      const before = heads()
      let answer: Credential | string | undefined
      const asking = asked(there, session.token).then((outcome) => (answer = outcome))
      await until(() => heads() > before || answer)
      await new Promise(setImmediate) // enough for a caller that would not wait for the watch
      assert.is(answer, undefined)
      release()
      await asking
      assert.is(answer, 'unauthorized')
    },
  )

nodes(
  'are not trusted for a look at the log that began before the machine was suspended',
  async ({ node, open, endTrust, suspend }) => {
    const { store, held, gates, release } = holding(node.store)
    const there = open(store)
    const { api_key_id } = await newApiKey(node)
    const session = await newSession(node, api_key_id)
    assert.ok(isKnown(await asked(there, session.token)))
    endTrust()
    Object.assign(held, { heads: true, subscriptions: true })
    const first = asked(there, session.token)
    await until(() => gates.length > 0)
    suspend()
    await revoke(node, api_key_id, session.session_id)
    const second = asked(there, session.token)
    await until(() => gates.length > 1)
    held.heads = false
    gates.shift()?.() // the head of before the revocation
    assert.ok(isKnown(await first))
    release()
    assert.is(await second, 'unauthorized')
  },
)

nodes('are unavailable, not refused, while the log does not answer', async ({ node, open, endTrust }) => {
  const { store } = node
  let isDown = false
  const there = open(
    Object.assign(Object.create(store) as EventStore, {
      subscribe: (options: Parameters<EventStore['subscribe']>[0]) => store.subscribe(options),
      head: () => (isDown ? Promise.reject(new AppError('unavailable', 'down')) : store.head()),
    }),
  )
  const { token } = await newApiKey(node)
  assert.ok(isKnown(await asked(there, token)))
  isDown = true
  endTrust()
  assert.is(await asked(there, token), 'unavailable')
  isDown = false
  assert.ok(isKnown(await asked(there, token)))
})

nodes('whose use the plan does not record are tried again a minute later', async ({ node }) => {
  let [tries, laterMs] = [0, 0]
  const there = new Authenticator({
    store: node.store,
    views: node.views,
    keyring,
    hints: openHints(),
    onUse: () => (tries++, Promise.reject(new AppError('rate_limit_exceeded', 'full'))),
    monotonic: () => clock.monotonic() + laterMs,
  })
  void there.watch(node.signal).catch(() => {})
  const { api_key_id } = await newApiKey(node)
  const { token } = await newServiceKey(node, api_key_id)
  for (let n = 0; n < 3; n++) assert.ok(isKnown(await asked(there, token)))
  assert.is(tries, 1)
  laterMs = 60_001
  for (let n = 0; n < 3; n++) assert.ok(isKnown(await asked(there, token)))
  assert.is(tries, 2)
})

nodes.run()
