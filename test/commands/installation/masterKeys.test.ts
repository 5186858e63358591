import * as assert from 'uvu/assert'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { newApiToken } from '../../../src/access/tokens.ts'
import { followMasterKeys } from '../../../src/commands/installation/followMasterKeys.ts'
import { masterKeyStatus } from '../../../src/commands/installation/masterKeyStatus.ts'
import { openInstallation } from '../../../src/commands/installation/openInstallation.ts'
import { readInstallation } from '../../../src/commands/installation/readInstallation.ts'
import { rewrapKeys } from '../../../src/commands/installation/rewrapKeys.ts'
import { rotateMasterKey } from '../../../src/commands/installation/rotateMasterKey.ts'
import { ensureFirstTenant } from '../../../src/commands/orgs/ensureFirstTenant.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError, isAppError, PermanentError } from '../../../src/errors.ts'
import { openLogger } from '../../../src/logger.ts'
import { newId } from '../../../src/ids.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { DataKeys } from '../../../src/secrets/dataKeys.ts'
import { Keyring } from '../../../src/secrets/keyring.ts'
import { masterKeyIdOf, MasterKeys } from '../../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../../src/secrets/wrappedKeys.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte)
const [OLD, NEW, FOREIGN] = [keyOf(1), keyOf(2), keyOf(3)]
const apiKey = newApiToken(newId())
const cause = { correlation_id: 'c', actor: 'operator' }
const never = new AbortController().signal

interface Context {
  store: EventStore
  blobs: Blobs
}

const opening = async (context: Context) => {
  context.store = openEventStore({ dir: tempDir() })
  context.blobs = await openBlobs({ dir: tempDir() })
}
const closing = async ({ store, blobs }: Context) => {
  await store.close()
  await blobs.close()
}

/** Starts a node, which shares nothing with others but the engines. */
const startNode = async ({ store, blobs }: Context, configured: Buffer, previous?: Buffer) => {
  const aggregates = openAggregates(store)
  const masterKeys: MasterKeys = new MasterKeys(
    previous ? [configured, previous] : [configured],
    async () => (await readInstallation({ aggregates }))?.current.id ?? masterKeys.configured,
  )
  const given = { masterKey: configured, apiKey, source: 'SVC_MASTER_KEY' }
  const { rootKey } = await openInstallation({ store, blobs, aggregates, masterKeys }, given)
  const wrappedKeys = new WrappedKeys(blobs, masterKeys)
  const dataKeys = new DataKeys({ keys: aggregates.dataKeys, wrapped: wrappedKeys })
  const keyring = new Keyring(rootKey, dataKeys)
  return { aggregates, masterKeys, masterKeyFile: null, wrappedKeys, dataKeys, keyring, rootKey }
}

const refusal = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
  } catch (error) {
    if (!isAppError(error)) throw error
    assert.not.match(error.message, '\n')
    return error.message
  }
  throw new Error('Expected a refusal')
}

const factsIn = async ({ store }: Context) =>
  (await Array.fromAsync(store.read('installation'))).map(({ event, metadata }) => ({ event, metadata }))

const blobsIn = async ({ blobs }: Context): Promise<string[]> =>
  (await Array.fromAsync(blobs.list('keys/'))).map(({ key }) => key)

const starting = suite<Context>('the master key at a start')
starting.before.each(opening)
starting.after.each(closing)

starting(
  'is proved by the canary of the first start: every other key is refused, and nothing is stored',
  async (engines) => {
    const { rootKey } = await startNode(engines, OLD)
    assert.equal((await startNode(engines, OLD)).rootKey, rootKey)
    const before = [await engines.store.head(), await blobsIn(engines)]
    const message = await refusal(startNode(engines, FOREIGN))
    assert.match(message, /^SVC_MASTER_KEY: .*another master key/)
    for (const id of [OLD, FOREIGN].map(masterKeyIdOf)) assert.match(message, id)
    await refusal(startNode(engines, FOREIGN, NEW))
    assert.equal([await engines.store.head(), await blobsIn(engines)], before)
  },
)

starting(
  'of two nodes that start at once with different keys is the one that was stored first',
  async (engines) => {
    const started = await Promise.allSettled([startNode(engines, OLD), startNode(engines, FOREIGN)])
    assert.equal(started.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.is((await blobsIn(engines)).length, 1)
  },
)

starting('of nodes that start at once with one key gives all of them one root key', async (engines) => {
  const nodes = await Promise.all([1, 2, 3].map(() => startNode(engines, OLD)))
  assert.is(new Set(nodes.map(({ rootKey }) => rootKey.toString('hex'))).size, 1)
  assert.is((await blobsIn(engines)).length, 1)
})

starting('of a new installation does not reveal the key of webhook URLs', async (engines) => {
  const { rootKey } = await startNode(engines, OLD)
  assert.not.equal(rootKey, OLD)
})

starting('is refused with blobs of another log', async (engines) => {
  await startNode(engines, OLD)
  const blobs = await openBlobs({ dir: tempDir() })
  assert.match(await refusal(startNode({ ...engines, blobs }, OLD)), /^SVC_BLOBS: .*root key/)
  await startNode({ store: openEventStore({ dir: tempDir() }), blobs }, OLD)
  assert.match(await refusal(startNode({ ...engines, blobs }, OLD)), /^SVC_BLOBS: /)
  await blobs.close()
})
starting.run()

/** The state that version 0.1.0 stored: no canary, and everything derived from the master key. */
const earlierNode = async ({ store, blobs }: Context, masterKey: Buffer) => {
  const aggregates = openAggregates(store)
  const wrapped = new WrappedKeys(blobs, new MasterKeys([masterKey]))
  const keyring = new Keyring(masterKey, new DataKeys({ keys: aggregates.dataKeys, wrapped }))
  await ensureFirstTenant({ aggregates, keyring }, { token: apiKey })
  return keyring
}

const earlier = suite<Context>('a log without a canary')
earlier.before.each(opening)
earlier.after.each(closing)

earlier('keeps its credentials, webhook URLs and secrets', async (engines) => {
  const before = await earlierNode(engines, OLD)
  const sealed = await before.seal('env', 'p', 'text')
  const { keyring } = await startNode(engines, OLD)
  const hook = { method: 'POST', service: 's', path: '/p' }
  assert.ok(keyring.proves('secret', before.macOf('secret')))
  assert.is(keyring.webhookToken('env', hook), before.webhookToken('env', hook))
  assert.is(await keyring.unseal('env', 'p', sealed), 'text')
})

earlier('proves its master key by a data key', async (engines) => {
  await (await earlierNode(engines, OLD)).seal('env', 'p', 'text')
  assert.match(await refusal(startNode(engines, FOREIGN)), /^SVC_MASTER_KEY: /)
  assert.match(await refusal(startNode(engines, FOREIGN, OLD)), /^SVC_MASTER_KEY: /)
  assert.equal(await factsIn(engines), [])
})

earlier('without data keys proves its master key by the first API key', async (engines) => {
  await earlierNode(engines, OLD)
  assert.match(await refusal(startNode(engines, FOREIGN)), /^SVC_MASTER_KEY: /)
  assert.equal(await factsIn(engines), [])
  await startNode(engines, OLD)
})
earlier.run()

const rotating = suite<Context>('the rotation of the master key')
rotating.before.each(opening)
rotating.after.each(closing)

/** Starts with the old key, stores secrets, then restarts with both keys and replaces the old one. */
const rotated = async (engines: Context) => {
  const first = await startNode(engines, OLD)
  const sealed = [
    await first.keyring.seal('env', 'p', 'of env'),
    await first.keyring.seal('env', 'p', 'of project', 'project'),
  ] as const
  const node = await startNode(engines, NEW, OLD)
  await rotateMasterKey(node, {}, cause)
  return { first, node, sealed }
}

rotating(
  'changes no secret, MAC or webhook token, and is done when nothing is wrapped with the old key',
  async (engines) => {
    const { first, node, sealed } = await rotated(engines)
    const { status, remaining } = await masterKeyStatus(node)
    assert.equal([status, remaining], ['rotating', 3])
    assert.is(await rewrapKeys(node, never), masterKeyIdOf(OLD))
    const done = await masterKeyStatus(node)
    assert.equal([done.status, done.rewrapped, done.remaining], ['idle', 3, 0])
    const { keyring } = await startNode(engines, NEW)
    assert.is(await keyring.unseal('env', 'p', sealed[0]), 'of env')
    assert.is(await keyring.unseal('env', 'p', sealed[1], 'project'), 'of project')
    assert.ok(keyring.proves('secret', first.keyring.macOf('secret')))
    const hook = { method: 'POST', service: 's', path: '/p' }
    assert.is(keyring.webhookToken('env', hook), first.keyring.webhookToken('env', hook))
  },
)

rotating('is recorded with its actor, and without a key', async (engines) => {
  const { node } = await rotated(engines)
  await rewrapKeys(node, never)
  const facts = await factsIn(engines)
  assert.equal(
    facts.map(({ event }) => event.type),
    ['InstallationFounded', 'MasterKeyReplaced', 'MasterKeyRetired'],
  )
  assert.is(facts[1]?.metadata.actor, 'operator')
  for (const key of [OLD, NEW, node.rootKey])
    for (const encoding of ['hex', 'base64'] as const)
      assert.not.match(JSON.stringify(facts), key.toString(encoding))
})

rotating(
  'does not begin before the operator asks for it: until then, the old key wraps new keys',
  async (engines) => {
    const old = await startNode(engines, OLD)
    const prepared = await startNode(engines, NEW, OLD)
    const sealed = await prepared.keyring.seal('env', 'p', 'text')
    assert.is(await old.keyring.unseal('env', 'p', sealed), 'text')
    assert.is(await (await startNode(engines, OLD)).keyring.unseal('env', 'p', sealed), 'text')
  },
)

rotating(
  'wraps keys that are created during it with the new key, also on a node that did not hear of it',
  async (engines) => {
    await startNode(engines, OLD)
    const other = await startNode(engines, NEW, OLD)
    const { node } = await rotated(engines)
    const sealed = await other.keyring.seal('later', 'p', 'text')
    await rewrapKeys(node, never)
    assert.is(await (await startNode(engines, NEW)).keyring.unseal('later', 'p', sealed), 'text')
  },
)

rotating(
  'that begins and ends while a key is being stored finds that key wrapped with the new one',
  async (engines) => {
    await startNode(engines, OLD)
    const node = await startNode(engines, NEW, OLD)
    let hasRotated = false
    const slow: Blobs = {
      ...engines.blobs,
      async put(key, content) {
        if (!hasRotated) {
          hasRotated = true
          await rotateMasterKey(node, {}, cause)
          await rewrapKeys(node, never)
        }
        return engines.blobs.put(key, content)
      },
    }
    const wrapped = new WrappedKeys(slow, node.masterKeys)
    const keyring = new Keyring(
      node.rootKey,
      new DataKeys({ keys: openAggregates(engines.store).dataKeys, wrapped }),
    )
    const sealed = await keyring.seal('env', 'p', 'text')
    assert.ok(hasRotated)
    assert.is(await (await startNode(engines, NEW)).keyring.unseal('env', 'p', sealed), 'text')
  },
)

rotating('needs both keys until it is done, in any order, and then only the new one', async (engines) => {
  const { node } = await rotated(engines)
  assert.match(await refusal(startNode(engines, NEW)), /^SVC_MASTER_KEY_PREVIOUS: /)
  assert.match(
    await refusal(startNode(engines, OLD)),
    /^SVC_MASTER_KEY: .*was replaced by .*SVC_MASTER_KEY_PREVIOUS/,
  )
  await startNode(engines, OLD, NEW)
  await rewrapKeys(node, never)
  await startNode(engines, NEW)
  await startNode(engines, NEW, OLD)
  assert.match(await refusal(startNode(engines, OLD)), /^SVC_MASTER_KEY: .*was replaced by/)
})

rotating('of a key that is current already is refused, and says what to do', async (engines) => {
  const node = await startNode(engines, OLD)
  assert.match(await refusal(rotateMasterKey(node, {}, cause)), /SVC_MASTER_KEY_PREVIOUS/)
  assert.match(await refusal(rotateMasterKey(node, { master_key: NEW }, cause)), /^master_key: /)
})

rotating('that is repeated changes nothing', async (engines) => {
  const { node } = await rotated(engines)
  await rotateMasterKey(node, {}, cause)
  assert.is((await factsIn(engines)).length, 2)
})

rotating('never brings back a key that is destroyed meanwhile', async (engines) => {
  const { node, sealed } = await rotated(engines)
  const slow: Blobs = {
    ...engines.blobs,
    async put(key, content) {
      if (key.startsWith('keys/env/env/'))
        await node.dataKeys.destroy({ env_id: 'env' }, { final: false }, cause)
      return engines.blobs.put(key, content)
    },
  }
  await rewrapKeys({ ...node, wrappedKeys: new WrappedKeys(slow, node.masterKeys) }, never)
  assert.is((await blobsIn(engines)).length, 1)
  await refusal((await startNode(engines, NEW)).keyring.unseal('env', 'p', sealed[0]))
})

rotating('continues after a crash at any moment', async (engines) => {
  const { node, sealed } = await rotated(engines)
  const dead = () => new AppError('unavailable', 'crashed')
  for (let allowed = 0; ; allowed++) {
    let left = allowed
    const dying: Blobs = {
      ...engines.blobs,
      put: (key, content) => (left-- > 0 ? engines.blobs.put(key, content) : Promise.reject(dead())),
      get: (key) => (left-- > 0 ? engines.blobs.get(key) : Promise.reject(dead())),
    }
    const { aggregates, masterKeys } = await startNode(engines, NEW, OLD)
    const wrappedKeys = new WrappedKeys(dying, masterKeys)
    const outcome = await rewrapKeys({ aggregates, wrappedKeys }, never).catch((error: unknown) => error)
    if (isAppError(outcome)) {
      const again = await startNode(engines, NEW, OLD)
      assert.is(await again.keyring.unseal('env', 'p', sealed[0]), 'of env')
      continue
    }
    assert.is(outcome, masterKeyIdOf(OLD))
    assert.ok(allowed > 3)
    break
  }
  assert.is((await masterKeyStatus(node)).status, 'idle')
  assert.is(await (await startNode(engines, NEW)).keyring.unseal('env', 'p', sealed[0]), 'of env')
})

rotating(
  'with a file stores the new key before it wraps anything, and uses the one that a crash left there',
  async (engines) => {
    const { masterKeys, ...node } = await startNode(engines, OLD)
    const stored: string[] = []
    const masterKeyFile = {
      replaceMasterKey: (next: Uint8Array) => void stored.push(masterKeyIdOf(next)),
      dropPreviousMasterKey() {},
    }
    const deps = { ...node, masterKeys, masterKeyFile }
    const crashed = {
      ...deps,
      aggregates: { ...node.aggregates, installation: openAggregates(engines.store).installation },
    }
    const appending = engines.store.append
    engines.store.append = () => Promise.reject(new AppError('unavailable', 'crashed'))
    await refusal(rotateMasterKey(crashed, {}, cause))
    engines.store.append = appending
    assert.is(stored.length, 1)
    assert.is((await masterKeyStatus(deps)).master_key_id, masterKeyIdOf(OLD))
    const { master_key_id } = await rotateMasterKey(deps, {}, cause)
    assert.equal(stored, [master_key_id])
  },
)

rotating('with a file takes the key of the operator, and refuses the current one', async (engines) => {
  const node = await startNode(engines, OLD)
  const masterKeyFile = { replaceMasterKey() {}, dropPreviousMasterKey() {} }
  assert.match(
    await refusal(rotateMasterKey({ ...node, masterKeyFile }, { master_key: OLD }, cause)),
    /^master_key: expected a new key/,
  )
  const { master_key_id } = await rotateMasterKey({ ...node, masterKeyFile }, { master_key: NEW }, cause)
  assert.is(master_key_id, masterKeyIdOf(NEW))
})

rotating('does not return to a key that was replaced earlier', async (engines) => {
  const { node } = await rotated(engines)
  await rewrapKeys(node, never)
  const again = await startNode(engines, OLD, NEW)
  assert.match(await refusal(rotateMasterKey(again, {}, cause)), /^master_key: /)
})
rotating('is reported by a node that lacks the new key, and stores no key on it', async (engines) => {
  const old = await startNode(engines, OLD)
  const { node } = await rotated(engines)
  const lines: string[] = []
  const logger = openLogger((line) => void lines.push(line))
  const deps = { store: engines.store, logger }
  const failed = await followMasterKeys({ ...old, ...deps }, { rewraps: true }, never).catch(
    (error: unknown) => error,
  )
  assert.instance(failed, PermanentError)
  assert.match((failed as Error).message, masterKeyIdOf(NEW))
  assert.match(await refusal(old.keyring.seal('later', 'p', 'text')), 'restart it')
  const stop = new AbortController()
  const following = followMasterKeys({ ...node, ...deps }, { rewraps: true }, stop.signal)
  await until(async () => (await masterKeyStatus(node)).status === 'idle')
  await until(() => !node.masterKeys.has(masterKeyIdOf(OLD)))
  stop.abort()
  await following
  for (const key of [OLD, NEW]) assert.not.match(lines.join(''), key.toString('base64'))
})
rotating.run()
