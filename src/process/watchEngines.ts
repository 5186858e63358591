import { type Config, isEmbeddedUrl } from './config.ts'
import type { Engines } from './engines.ts'
import type { AskedEngine, Outages } from './outages.ts'

/** A collection and a blob that do not exist: asking for them is a cheap request that only the engine can answer. */
const NO_COLLECTION = { name: 'outages', version: 1, indexes: [] } as const
const NO_BLOB = 'outages'

/**
 * Watches the external engines that a node cannot work without. The embedded ones are part of this process, and Redis is
 * optional: its adapter logs its outages.
 */
export const watchEngines = (
  { store, readModels, blobs }: Pick<Engines, 'store' | 'readModels' | 'blobs'>,
  config: Pick<Config, 'eventStore' | 'readModels' | 'blobs'>,
  { outages, signal }: { readonly outages: Outages; readonly signal: AbortSignal },
): void => {
  const engines: readonly (AskedEngine & { readonly url: string })[] = [
    { name: 'The event store (EventStoreDB)', url: config.eventStore, ask: () => store.head() },
    {
      name: 'The database of the read models (MongoDB)',
      url: config.readModels,
      ask: () => readModels.reader(NO_COLLECTION).checkpoint(),
    },
    { name: 'The store of the blobs (S3)', url: config.blobs, ask: () => blobs.head(NO_BLOB) },
  ]
  for (const engine of engines) if (!isEmbeddedUrl(engine.url)) void outages.watch(engine, signal)
}
