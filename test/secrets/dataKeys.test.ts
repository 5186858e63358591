import * as assert from 'uvu/assert'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { DataKeys } from '../../src/secrets/dataKeys.ts'
import { isAppError } from '../../src/errors.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { MasterKeys } from '../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../src/secrets/wrappedKeys.ts'
import { suite } from '../support/suite.ts'
import { forwarding } from '../support/forwarding.ts'
import { until } from '../support/until.ts'
import { cause, closing, masterKey, opening, type Secrets, throws } from './openSecrets.ts'

const dataKeysOn = (store: EventStore, blobs: Blobs): DataKeys =>
  new DataKeys({
    keys: openAggregates(store).dataKeys,
    wrapped: new WrappedKeys(blobs, new MasterKeys([masterKey])),
  })

const keys = suite<Secrets>('a data key')
keys.before.each(opening)
keys.after.each(closing)

keys('is random, and stored encrypted', async ({ node, blobs, store }) => {
  const { dataKeys } = node()
  const [one, two] = [await dataKeys.current({ env_id: 'a' }), await dataKeys.current({ env_id: 'b' })]
  assert.not.ok(one.key.equals(two.key))
  const raw = one.key.export()
  for await (const { key } of blobs.list('keys/')) {
    const bytes = Buffer.concat(await Array.fromAsync(await blobs.get(key)))
    for (const text of [raw, raw.toString('base64'), raw.toString('hex')]) assert.not(bytes.includes(text))
  }
  const facts = JSON.stringify(await Array.fromAsync(store.read('datakeys-a')))
  assert.not(facts.includes(raw.toString('base64')))
})

keys('unseals nothing in another scope', async ({ node, blobs }) => {
  const { dataKeys } = node()
  const { id } = await dataKeys.current({ env_id: 'a' })
  const bytes = Buffer.concat(await Array.fromAsync(await blobs.get(`keys/a/env/${id}`)))
  await blobs.put(`keys/b/env/${id}`, bytes)
  await throws(node().dataKeys.of({ env_id: 'b' }, id))
})

keys('can still unseal after its rotation, and seals no more', async ({ node }) => {
  const { keyring, dataKeys } = node()
  const before = await keyring.seal('env', 'p', 'old')
  const next = await dataKeys.rotate({ env_id: 'env' }, cause)
  assert.ok((await keyring.seal('env', 'p', 'new')).startsWith(`2.${next}.`))
  assert.is(await keyring.unseal('env', 'p', before), 'old')
  assert.is(await node().keyring.unseal('env', 'p', before), 'old')
})

for (const by of ['this', 'another'] as const)
  keys(`that is read while ${by} node rotates it seals no more`, async ({ node, store, blobs }) => {
    await node().keyring.seal('env', 'p', 'x')
    const [watches, reads] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const isSeen = Promise.withResolvers<void>()
    const watched = forwarding(store, {
      async *subscribe(options) {
        watches.resolve()
        for await (const batch of store.subscribe(options)) {
          yield batch
          if (batch.events.length > 0) isSeen.resolve()
        }
      },
    })
    const slow: Blobs = {
      ...blobs,
      async get(...args) {
        reads.resolve()
        await isSeen.promise
        return blobs.get(...args)
      },
    }
    const mine = dataKeysOn(store, slow)
    const stop = new AbortController()
    const watching = mine.watch(watched, stop.signal)
    await watches.promise
    const before = mine.current({ env_id: 'env' })
    await reads.promise
    const rotating = by === 'this' ? mine : node().dataKeys
    const next = await rotating.rotate({ env_id: 'env' }, { ...cause, env_id: 'env' })
    await before
    assert.is((await mine.current({ env_id: 'env' })).id, next)
    stop.abort()
    await watching.catch(() => {})
  })

keys('rotated by another node seals no more', async ({ node, store }) => {
  const [mine, other] = [node(), node()]
  const stop = new AbortController()
  const watching = mine.dataKeys.watch(store, stop.signal)
  await mine.keyring.seal('env', 'p', 'x')
  const next = await other.dataKeys.rotate({ env_id: 'env' }, { ...cause, env_id: 'env' })
  await until(async () => (await mine.keyring.seal('env', 'p', 'x')).startsWith(`2.${next}.`) || undefined)
  stop.abort()
  await watching.catch(() => {})
})

keys(
  'of a project cannot unseal anything once destroyed, and other keys still work',
  async ({ node, blobs }) => {
    const { keyring, dataKeys } = node()
    const doomed = await keyring.seal('env', 'p', 'x', 'doomed')
    const [kept, ofEnv] = [await keyring.seal('env', 'p', 'x', 'kept'), await keyring.seal('env', 'p', 'x')]
    await dataKeys.rotate({ env_id: 'env', project_id: 'doomed' }, cause)
    await dataKeys.destroy({ env_id: 'env', project_id: 'doomed' }, { final: true }, cause)
    assert.equal(await Array.fromAsync(blobs.list('keys/env/doomed/')), [])
    for (const each of [keyring, node().keyring]) {
      assert.ok(isAppError(await throws(each.unseal('env', 'p', doomed, 'doomed')), 'not_found'))
      assert.ok(isAppError(await throws(each.seal('env', 'p', 'x', 'doomed')), 'not_found'))
      assert.is(await each.unseal('env', 'p', kept, 'kept'), 'x')
      assert.is(await each.unseal('env', 'p', ofEnv), 'x')
    }
  },
)

keys('that is missing or damaged in the blobs is not taken for a destroyed one', async ({ node, blobs }) => {
  for (const project of [undefined, 'p1']) {
    const sealed = await node().keyring.seal('env', 'p', 'x', project)
    const id = sealed.split('.')[1]
    const blob = `keys/env/${project ?? 'env'}/${id}`
    const wrapped = Buffer.concat(await Array.fromAsync(await blobs.get(blob)))
    for (const bytes of [null, Buffer.alloc(0), wrapped.subarray(0, -4)]) {
      await (bytes ? blobs.put(blob, bytes) : blobs.remove(blob))
      for (const use of [
        () => node().keyring.unseal('env', 'p', sealed, project),
        () => node().keyring.seal('env', 'p', 'y', project),
      ]) {
        const error = await throws(use())
        assert.ok(isAppError(error, 'unavailable'), String(error))
        const state = bytes ? 'damaged' : 'missing'
        assert.is(error.message, `The data key ${blob} is ${state} in the blobs; restore it from a backup`)
      }
    }
    await blobs.put(blob, wrapped)
    assert.is(await node().keyring.unseal('env', 'p', sealed, project), 'x')
  }
})

keys('of an environment destroyed take those of its projects with them', async ({ node, blobs }) => {
  const { keyring, dataKeys } = node()
  const sealed = [
    await keyring.seal('env', 'p', 'x'),
    await keyring.seal('env', 'p', 'x', 'project'),
  ] as const
  const other = await keyring.seal('other', 'p', 'x')
  await dataKeys.destroy({ env_id: 'env' }, { final: false }, cause)
  assert.equal(await Array.fromAsync(blobs.list('keys/env/')), [])
  await throws(keyring.unseal('env', 'p', sealed[0]))
  await throws(keyring.unseal('env', 'p', sealed[1], 'project'))
  assert.is(await keyring.unseal('other', 'p', other), 'x')
  for (const project of [undefined, 'project']) {
    const again = await keyring.seal('env', 'p', 'new', project)
    assert.is(await keyring.unseal('env', 'p', again, project), 'new')
  }
})

for (const [what, project] of [
  ['an environment', undefined],
  ['a project without a key before', 'project'],
] as const)
  keys(
    `of ${what} that is created right before the destruction is destroyed too`,
    async ({ node, store, blobs }) => {
      const other = node()
      await other.keyring.seal('env', 'p', 'x')
      let sealed = ''
      /** Another node creates a key and seals with it, right before the first fact of the destruction is stored. */
      const late = forwarding(store, {
        async append(stream, events, expected) {
          if (sealed === '') {
            sealed = 'pending'
            await other.dataKeys.rotate({ env_id: 'env', project_id: project }, cause)
            sealed = await other.keyring.seal('env', 'p', 'x', project)
          }
          return store.append(stream, events, expected)
        },
      })
      await dataKeysOn(late, blobs).destroy({ env_id: 'env' }, { final: false }, cause)
      assert.ok(isAppError(await throws(node().keyring.unseal('env', 'p', sealed, project)), 'not_found'))
      assert.equal(await Array.fromAsync(blobs.list('keys/env/')), [])
    },
  )

keys('that is created after a destruction remains', async ({ node, store, blobs }) => {
  const other = node()
  await other.keyring.seal('env', 'p', 'x')
  const [before] = await Array.fromAsync(blobs.list('keys/env/'))
  let sealed = ''
  const removing: Blobs = {
    ...blobs,
    async remove(key) {
      if (key === before?.key) sealed = await node().keyring.seal('env', 'p', 'new')
      await blobs.remove(key)
    },
  }
  await dataKeysOn(store, removing).destroy({ env_id: 'env' }, { final: false }, cause)
  assert.is(await node().keyring.unseal('env', 'p', sealed), 'new')
})

keys('that is destroyed while a text is sealed is replaced by a new one', async ({ node, store, blobs }) => {
  for (const project of [undefined, 'p1']) {
    await node().keyring.seal('env', 'p', 'x', project)
    let isFirst = true
    const reading: Blobs = {
      ...blobs,
      async get(...args) {
        if (isFirst) {
          isFirst = false
          await node().dataKeys.destroy({ env_id: 'env' }, { final: false }, cause)
        }
        return blobs.get(...args)
      },
    }
    const sealed = await new Keyring(masterKey, dataKeysOn(store, reading)).seal('env', 'p', 'new', project)
    assert.is(await node().keyring.unseal('env', 'p', sealed, project), 'new')
  }
})

for (const moment of ['remove', 'get'] as const)
  keys(
    `that another node creates faster, and destroys before the ${moment} of the slower one, is replaced by a new one`,
    async ({ node, store, blobs }) => {
      const project = 'p1'
      let faster: Promise<unknown> | undefined
      let isDestroyed = false
      const destroyed = async () => {
        if (isDestroyed || !faster) return
        isDestroyed = true
        await node().dataKeys.destroy({ env_id: 'env', project_id: project }, { final: false }, cause)
      }
      const slow: Blobs = {
        ...blobs,
        async put(...args) {
          const stored = await blobs.put(...args)
          faster ??= node().keyring.seal('env', 'p', 'x', project)
          await faster
          return stored
        },
        async remove(key) {
          if (moment === 'remove') await destroyed()
          await blobs.remove(key)
        },
        async get(...args) {
          if (moment === 'get') await destroyed()
          return blobs.get(...args)
        },
      }
      const sealed = await new Keyring(masterKey, dataKeysOn(store, slow)).seal('env', 'p', 'new', project)
      assert.ok(isDestroyed)
      assert.is(await node().keyring.unseal('env', 'p', sealed, project), 'new')
    },
  )

keys('that is removed while it is wrapped again does not come back', async ({ node, blobs }) => {
  await node().keyring.seal('env', 'p', 'x')
  const storing = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  let removed: Promise<void> | undefined
  const ordered: Blobs = {
    ...blobs,
    async put(...args) {
      storing.resolve()
      await asked.promise
      await removed
      return blobs.put(...args)
    },
    remove: (key) => (removed = blobs.remove(key)),
  }
  const wrapped = new WrappedKeys(ordered, new MasterKeys([masterKey]))
  const [key] = await Array.fromAsync(wrapped.list())
  assert.ok(key)
  const changes = [wrapped.wrapAgain(key)]
  await storing.promise
  changes.push(wrapped.remove(key))
  asked.resolve()
  await Promise.all(changes)
  assert.equal(await Array.fromAsync(blobs.list('keys/env/')), [])
})

keys('that arrives after its project was deleted leaves nothing', async ({ node, store, blobs }) => {
  await dataKeysOn(store, blobs).destroy({ env_id: 'env', project_id: 'gone' }, { final: true }, cause)
  assert.ok(isAppError(await throws(node().keyring.seal('env', 'p', 'x', 'gone')), 'not_found'))
  assert.equal(await Array.fromAsync(blobs.list('keys/env/')), [])
})

keys('unseals nothing from the moment its destruction is stored', async ({ node, store, blobs }) => {
  const sealed = await node().keyring.seal('env', 'p', 'x')
  let tried = 0
  const removing: Blobs = {
    ...blobs,
    async remove(key) {
      assert.ok(isAppError(await throws(node().keyring.unseal('env', 'p', sealed)), 'not_found'))
      tried++
      await blobs.remove(key)
    },
  }
  await dataKeysOn(store, removing).destroy({ env_id: 'env' }, { final: false }, cause)
  assert.is(tried, 1)
})

keys(
  'seals and unseals nothing on the node that destroys it, from the same moment',
  async ({ store, blobs }) => {
    let after = ''
    const removing: Blobs = {
      ...blobs,
      async remove(key) {
        assert.ok(isAppError(await throws(mine.unseal('env', 'p', before)), 'not_found'))
        after = await mine.seal('env', 'p', 'new')
        await blobs.remove(key)
      },
    }
    const dataKeys = dataKeysOn(store, removing)
    const mine = new Keyring(masterKey, dataKeys)
    const before = await mine.seal('env', 'p', 'x')
    assert.is(await mine.unseal('env', 'p', before), 'x')
    await dataKeys.destroy({ env_id: 'env' }, { final: false }, cause)
    assert.is(await mine.unseal('env', 'p', after), 'new')
  },
)

keys('is forgotten when another node destroys it', async ({ node, store }) => {
  const [mine, other] = [node(), node()]
  const stop = new AbortController()
  const watching = mine.dataKeys.watch(store, stop.signal)
  const sealed = await mine.keyring.seal('env', 'p', 'x')
  await other.dataKeys.destroy({ env_id: 'env' }, { final: false }, { ...cause, env_id: 'env' })
  await until(() =>
    mine.keyring.unseal('env', 'p', sealed).then(
      () => undefined,
      () => true,
    ),
  )
  stop.abort()
  await watching.catch(() => {})
})
keys.run()
