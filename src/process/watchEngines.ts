import { type Config, isEmbeddedUrl } from './config.ts'
import type { Engines } from './engines.ts'
import type { Outages } from './outages.ts'

/** A collection and a blob that do not exist: asking for them is a cheap request that only the engine can answer. */
const NO_COLLECTION = { name: 'outages', version: 1, indexes: [] } as const
const NO_BLOB = 'outages'

type Urls = Pick<Config, 'eventStore' | 'readModels' | 'blobs'>

/** The engines that a node cannot work without: their names in the metrics, in `svc status`, and as the subject of a sentence. */
const REQUIRED = [
  {
    setting: 'eventStore',
    id: 'event_store',
    engine: 'event store',
    kind: 'EventStoreDB',
    name: 'The event store (EventStoreDB)',
  },
  {
    setting: 'readModels',
    id: 'read_models',
    engine: 'read models',
    kind: 'MongoDB',
    name: 'The database of the read models (MongoDB)',
  },
  { setting: 'blobs', id: 'blobs', engine: 'blobs', kind: 'S3', name: 'The store of the blobs (S3)' },
] as const

/**
 * Watches the external engines that a node cannot work without. The embedded ones are part of this process, and Redis is
 * optional: its adapter logs its outages.
 */
export const watchEngines = (
  { store, readModels, blobs }: Pick<Engines, 'store' | 'readModels' | 'blobs'>,
  config: Urls,
  { outages, signal }: { readonly outages: Outages; readonly signal: AbortSignal },
): void => {
  const asks = {
    eventStore: () => store.head(),
    readModels: () => readModels.reader(NO_COLLECTION).checkpoint(),
    blobs: () => blobs.head(NO_BLOB),
  }
  for (const { setting, id, name } of REQUIRED)
    if (!isEmbeddedUrl(config[setting])) void outages.watch({ id, name, ask: asks[setting] }, signal)
}

/** An engine of this node, as it is now. */
export interface EngineState {
  readonly engine: string
  readonly kind: string
  readonly answers: boolean
  /** The beginning of its outage, ISO 8601; null when it answers or the time is unknown. */
  readonly since: string | null
}

export const engineStates = (
  config: Urls & Pick<Config, 'redis'>,
  outages: Pick<Outages, 'current'>,
  hints: Pick<Engines['hints'], 'connected'>,
): readonly EngineState[] => [
  ...REQUIRED.map(({ setting, engine, kind, name }) => {
    const outage = outages.current.find((each) => each.engine === name)
    const shown = isEmbeddedUrl(config[setting]) ? 'embedded' : kind
    return { engine, kind: shown, answers: !outage, since: outage?.since ?? null }
  }),
  ...(config.redis === null
    ? []
    : [{ engine: 'Redis', kind: 'Redis', answers: hints.connected, since: null }]),
]
