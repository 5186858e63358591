import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { DataKeys } from '../../src/secrets/dataKeys.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { MasterKeys } from '../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../src/secrets/wrappedKeys.ts'
import { tempDir } from '../support/tempDir.ts'

export const masterKey = Buffer.alloc(32, 7)
export const cause = { correlation_id: 'c' }

/** The secrets of nodes that share their engines. */
export interface Secrets {
  store: EventStore
  blobs: Blobs
  /** Another node: nothing is shared but the engines. */
  node(key?: Buffer): { keyring: Keyring; dataKeys: DataKeys }
}

export const opening = async (context: Secrets) => {
  const store = openEventStore({ dir: tempDir() })
  const blobs = await openBlobs({ dir: tempDir() })
  const node = (key = masterKey) => {
    const wrapped = new WrappedKeys(blobs, new MasterKeys([key]))
    const dataKeys = new DataKeys({ keys: openAggregates(store).dataKeys, wrapped })
    return { dataKeys, keyring: new Keyring(key, dataKeys) }
  }
  Object.assign(context, { store, blobs, node })
}

export const closing = async ({ store, blobs }: Secrets) => {
  await store.close()
  await blobs.close()
}

/** Rejects unless the work rejects. Resolves with its error. */
export const throws = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.unreachable('Expected it not to open'),
    (error: unknown) => error,
  )
