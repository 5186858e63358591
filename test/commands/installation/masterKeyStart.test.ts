import * as assert from 'uvu/assert'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { ensureFirstTenant } from '../../../src/commands/orgs/ensureFirstTenant.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { DataKeys } from '../../../src/secrets/dataKeys.ts'
import { Keyring } from '../../../src/secrets/keyring.ts'
import { masterKeyIdOf, MasterKeys } from '../../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../../src/secrets/wrappedKeys.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { reportExercised } from '../../support/engines.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import {
  type Context,
  apiKey,
  blobsIn,
  closing,
  factsIn,
  FOREIGN,
  NEW,
  OLD,
  opening,
  refusal,
  startNode,
} from './masterKeyNode.ts'

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

reportExercised('EventStoreDB stand-in')

/** Engines whose log is on an event store that is never empty, with the facts of another installation. */
const shared = suite<Context & { stop: () => Promise<void> }>('the master key at a start on EventStoreDB')
shared.before.each(async (context) => {
  const standIn = await startStandIn()
  const other = {
    store: await openSurely(`${standIn.url}&prefix=other.`),
    blobs: await openBlobs({ dir: tempDir() }),
  }
  await earlierNode(other, FOREIGN)
  await closing(other)
  context.store = await openSurely(`${standIn.url}&prefix=own.`)
  context.blobs = await openBlobs({ dir: tempDir() })
  context.stop = standIn.stop
})
shared.after.each(async (context) => {
  await closing(context)
  await context.stop()
})

shared('of a new installation is not its root key', async (engines) => {
  const { rootKey } = await startNode(engines, OLD)
  assert.not.equal(rootKey, OLD)
  assert.equal((await startNode(engines, OLD)).rootKey, rootKey)
})

shared('is the root key of a log without a canary', async (engines) => {
  await earlierNode(engines, OLD)
  assert.equal((await startNode(engines, OLD)).rootKey, OLD)
})

shared(
  'gives nodes one root key also if one founds the installation while another starts',
  async (engines) => {
    const { store } = engines
    let first: Promise<Buffer> | undefined
    const found = async () => {
      const { aggregates, keyring, rootKey } = await startNode(engines, OLD)
      await ensureFirstTenant({ aggregates, keyring }, { token: apiKey })
      return rootKey
    }
    const late = forwarding(store, { head: async () => (await (first ??= found())) && store.head() })
    const { rootKey } = await startNode({ ...engines, store: late }, OLD)
    assert.equal(rootKey, await first)
    assert.is((await blobsIn(engines)).length, 1)
  },
)
shared.run()
