import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { followMasterKeys } from '../../../src/commands/installation/followMasterKeys.ts'
import { masterKeyStatus } from '../../../src/commands/installation/masterKeyStatus.ts'
import { rewrapKeys } from '../../../src/commands/installation/rewrapKeys.ts'
import { rotateMasterKey } from '../../../src/commands/installation/rotateMasterKey.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError, isAppError, PermanentError } from '../../../src/errors.ts'
import { openLogger, silent } from '../../../src/logger.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import { DataKeys } from '../../../src/secrets/dataKeys.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { Keyring } from '../../../src/secrets/keyring.ts'
import { masterKeyIdOf } from '../../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../../src/secrets/wrappedKeys.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import {
  apiKey,
  type Context,
  blobsIn,
  cause,
  closing,
  factsIn,
  never,
  NEW,
  OLD,
  opening,
  refusal,
  startNode,
} from './masterKeyNode.ts'

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

rotating(
  'wraps all other keys when one is damaged, and is done when that one is restored',
  async (engines) => {
    const { node } = await rotated(engines)
    const [first = ''] = await blobsIn(engines).then((blobs) =>
      blobs.filter((key) => key.startsWith('keys/env/')),
    )
    const wrapped = await buffer(await engines.blobs.get(first))
    await engines.blobs.put(first, wrapped.subarray(0, -4))
    assert.match(await refusal(rewrapKeys(node, never)), `${first} is damaged`)
    assert.is((await masterKeyStatus(node)).remaining, 1)
    await engines.blobs.put(first, wrapped)
    assert.is(await rewrapKeys(node, never), masterKeyIdOf(OLD))
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

rotating('that has ended lets both keys open what is restored from an earlier backup', async (engines) => {
  const { node, sealed } = await rotated(engines)
  const backup = await Promise.all(
    (await blobsIn(engines)).map(async (key) => ({ key, bytes: await buffer(await engines.blobs.get(key)) })),
  )
  await rewrapKeys(node, never)
  for (const { key, bytes } of backup) await engines.blobs.put(key, bytes)
  assert.match(await refusal(startNode(engines, NEW)), `${masterKeyIdOf(OLD)}; restart it`)
  const restored = await startNode(engines, NEW, OLD)
  const stop = new AbortController()
  const deps = { ...restored, store: engines.store, logger: silent }
  const following = followMasterKeys(deps, { rewraps: true }, stop.signal)
  await until(() => !restored.masterKeys.has(masterKeyIdOf(OLD)))
  stop.abort()
  await following
  const { keyring } = await startNode(engines, NEW)
  assert.is(await keyring.unseal('env', 'p', sealed[0]), 'of env')
  assert.is(await keyring.unseal('env', 'p', sealed[1], 'project'), 'of project')
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

rotating(
  'with a file keeps its former key, although the one of the last rotation is dropped',
  async (engines) => {
    const { node } = await rotated(engines)
    await rewrapKeys(node, never)
    const file: { current: Uint8Array; previous: Uint8Array | null } = { current: NEW, previous: OLD }
    const masterKeyFile = {
      replaceMasterKey: (next: Uint8Array) =>
        void Object.assign(file, { current: next, previous: file.current }),
      dropPreviousMasterKey: (isRetired: (key: Uint8Array) => boolean) => {
        if (file.previous && isRetired(file.previous)) file.previous = null
      },
    }
    const appending = engines.store.append
    engines.store.append = () => Promise.reject(new AppError('unavailable', 'the fact is not stored yet'))
    await refusal(rotateMasterKey({ ...node, masterKeyFile }, {}, cause))
    engines.store.append = appending
    const stop = new AbortController()
    const following = followMasterKeys(
      { ...node, store: engines.store, logger: silent, masterKeyFile },
      { rewraps: false },
      stop.signal,
    )
    await until(() => !node.masterKeys.has(masterKeyIdOf(OLD)))
    stop.abort()
    await following
    assert.equal(file.previous, NEW)
  },
)

rotating('does not return to a key that was replaced earlier', async (engines) => {
  const { node } = await rotated(engines)
  await rewrapKeys(node, never)
  const again = await startNode(engines, OLD, NEW)
  assert.match(await refusal(rotateMasterKey(again, {}, cause)), /^master_key: /)
})

/** A node whose file has had the keys `first`, `NEW` and `last`, of which the last one is current. */
const rotatedTwice = async (engines: Context) => {
  const dataDir = tempDir()
  const config = { masterKey: null, previousMasterKey: null, apiKey, operatorToken: null, dataDir }
  const { file, masterKey } = openSecrets(config)
  if (!file) throw new Error('Expected a file')
  const node = { ...(await startNode(engines, masterKey)), masterKeyFile: file }
  await rotateMasterKey(node, { master_key: NEW }, cause)
  await rewrapKeys(node, never)
  await rotateMasterKey(node, {}, cause)
  await rewrapKeys(node, never)
  return { node, file, secrets: () => openSecrets(config) }
}

rotating('with a file refuses a key that was replaced earlier before it stores it', async (engines) => {
  const { node, file } = await rotatedTwice(engines)
  const stored = readFileSync(file.path, 'utf8')
  assert.match(await refusal(rotateMasterKey(node, { master_key: NEW }, cause)), /^master_key: .*earlier/)
  assert.is(readFileSync(file.path, 'utf8'), stored)
  assert.is((await rotateMasterKey(node, {}, cause)).status, 'rotating')
})

rotating('with a file in which such a key was stored continues with a new one', async (engines) => {
  const { file, secrets } = await rotatedTwice(engines)
  const last = secrets().masterKey
  file.replaceMasterKey(NEW, (key) => last.equals(key))
  const node = { ...(await startNode(engines, NEW, last)), masterKeyFile: file }
  assert.is((await rotateMasterKey(node, {}, cause)).status, 'rotating')
  const { masterKey, previousMasterKey } = secrets()
  assert.equal(previousMasterKey, last)
  await rewrapKeys(node, never)
  await startNode(engines, masterKey)
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
