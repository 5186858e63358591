import * as assert from 'uvu/assert'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { newApiToken } from '../../../src/access/tokens.ts'
import { openInstallation } from '../../../src/commands/installation/openInstallation.ts'
import { readInstallation } from '../../../src/commands/installation/readInstallation.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { DataKeys } from '../../../src/secrets/dataKeys.ts'
import { Keyring } from '../../../src/secrets/keyring.ts'
import { MasterKeys } from '../../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../../src/secrets/wrappedKeys.ts'
import { tempDir } from '../../support/tempDir.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte)
export const [OLD, NEW, FOREIGN] = [keyOf(1), keyOf(2), keyOf(3)]
export const apiKey = newApiToken(newId())
export const cause = { correlation_id: 'c', actor: 'operator' }
export const never = new AbortController().signal

export interface Context {
  store: EventStore
  blobs: Blobs
}

export const opening = async (context: Context) => {
  context.store = openEventStore({ dir: tempDir() })
  context.blobs = await openBlobs({ dir: tempDir() })
}
export const closing = async ({ store, blobs }: Context) => {
  await store.close()
  await blobs.close()
}

/** Starts a node, which shares nothing with others but the engines. */
export const startNode = async ({ store, blobs }: Context, configured: Buffer, previous?: Buffer) => {
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

export const refusal = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
  } catch (error) {
    if (!isAppError(error)) throw error
    assert.not.match(error.message, '\n')
    return error.message
  }
  throw new Error('Expected a refusal')
}

export const factsIn = async ({ store }: Context) =>
  (await Array.fromAsync(store.read('installation'))).map(({ event, metadata }) => ({ event, metadata }))

export const blobsIn = async ({ blobs }: Context): Promise<string[]> =>
  (await Array.fromAsync(blobs.list('keys/'))).map(({ key }) => key)
