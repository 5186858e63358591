import { isOf, type Recorded } from '../../src/events/event.ts'
import { openReadModels, openStore } from '../../src/process/engines.ts'
import { readConfig } from '../../src/process/config.ts'
import { allProjections } from '../../src/projections/index.ts'
import type { Event, Run } from '../support/build.ts'
import { allOf } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { until } from '../support/until.ts'
import type { Lists, Records, StoredModel } from './records.ts'

type Variables = Readonly<Record<string, string>>

/** The time for one page of a list: read models that scan may be too late for several requests in succession. */
const PAGE = { timeoutMs: 120_000, everyMs: 500 } as const

/** Reads every list that clients can read. A page is read again until it is there, and the lists do not change meanwhile. */
export const readLists = async (api: Api): Promise<Lists> => {
  const patient: Api = { ...api, page: (path) => until(() => api.page(path), PAGE) }
  return {
    runs: await allOf<Run>(patient, '/runs'),
    events: await allOf<Event>(patient, '/events'),
    files: await allOf<{ path: string; etag: string }>(patient, '/files'),
    stats: await until(() => api.get<Lists['stats']>('/runs/stats'), PAGE),
  }
}

/** Reads the log and the read models without the service, which must have stopped. */
export const readStored = async (
  env: Variables,
  markId: string,
): Promise<Pick<Records, 'log' | 'models' | 'quietAt'>> => {
  const log = await readLog(env)
  const mark = log.find((fact) => isOf(fact, 'EventPublished') && fact.event.event_id === markId)
  return { log, models: await readAllModels(env), quietAt: mark?.cursor ?? log.at(-1)?.cursor ?? '' }
}

const readLog = async (env: Variables): Promise<Recorded[]> => {
  const store = await openStore(readConfig(env))
  const enough = new AbortController()
  try {
    const head = await store.head()
    const log: Recorded[] = []
    for await (const { events, cursor } of store.subscribe({ signal: enough.signal })) {
      log.push(...events)
      if (cursor >= head) break
    }
    return log
  } finally {
    enough.abort()
    await store.close()
  }
}

const readAllModels = async (env: Variables): Promise<StoredModel[]> => {
  const readModels = await openReadModels(readConfig(env))
  try {
    const models: StoredModel[] = []
    for (const projection of allProjections) {
      const collection = readModels.reader(projection)
      models.push({
        name: projection.name,
        docs: await Array.fromAsync(collection.scan()),
        checkpoint: (await collection.checkpoint()) ?? '',
      })
    }
    return models
  } finally {
    await readModels.close()
  }
}
