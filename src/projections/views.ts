import { AppError } from '../errors.ts'
import { keepGoing } from '../keepGoing.ts'
import type { Logger } from '../log.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Collection, Query, ReadModels } from '../ports/readModels.ts'
import { type BuildDoc, builds } from './builds.ts'
import { Directory } from './directory.ts'
import { type EventDoc, events } from './events.ts'
import { allProjections } from './index.ts'
import { Projector } from './projector.ts'
import { type ProjectDoc, projects } from './projects.ts'
import { type RunDoc, runs } from './runs.ts'
import { type ApiKeyDoc, apiKeys, type EnvDoc, envs, type OrgDoc, orgs } from './tenants.ts'
import { type WorkerDoc, workers } from './workers.ts'
import type { Payloads } from '../payloads.ts'
import type { Cursor } from '../events/event.ts'

/** The read side of one node: its collections, their projectors, and the directory kept in memory. */
export interface Views {
  readonly runs: Collection<RunDoc>
  readonly events: Collection<EventDoc>
  readonly projects: Collection<ProjectDoc>
  readonly builds: Collection<BuildDoc>
  readonly orgs: Collection<OrgDoc>
  readonly envs: Collection<EnvDoc>
  readonly apiKeys: Collection<ApiKeyDoc>
  readonly workers: Collection<WorkerDoc>
  readonly directory: Directory
  /** Resolves when every read model, or those named, hold everything appended so far (I2). */
  settled(...names: readonly string[]): Promise<void>
  /** Resolves when they hold everything up to the cursor. */
  reach(cursor: Cursor): Promise<void>
  /** How far each read model has come. */
  positions(): Record<string, Cursor>
}

/** How long a reader waits for the read models before it is told to come back. */
const SETTLE_MS = 5000

const within = async (ms: number, reached: Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AppError('unavailable', 'The read models are behind the log')), ms)
  })
  await Promise.race([reached, late]).finally(() => clearTimeout(timer))
}

export const openViews = async (
  {
    store,
    readModels,
    payloads,
    log,
  }: { store: EventStore; readModels: ReadModels; payloads: Payloads; log: Logger },
  signal: AbortSignal,
): Promise<Views> => {
  const projectors = new Map(
    allProjections.map((projection) => [projection.name, new Projector(projection, { readModels, store })]),
  )
  for (const projector of projectors.values()) {
    void keepGoing(`The projector of ${projector.name}`, (until) => projector.run(until), { signal, log })
  }
  const collections = {
    runs: readModels.reader<RunDoc>(runs),
    events: readModels.reader<EventDoc>(events),
    projects: readModels.reader<ProjectDoc>(projects),
    builds: readModels.reader<BuildDoc>(builds),
    orgs: readModels.reader<OrgDoc>(orgs),
    envs: readModels.reader<EnvDoc>(envs),
    apiKeys: readModels.reader<ApiKeyDoc>(apiKeys),
    workers: readModels.reader<WorkerDoc>(workers),
  }
  const reach = async (cursor: Cursor, names: readonly string[] = [...projectors.keys()]): Promise<void> => {
    for (const name of names) await projectors.get(name)?.reach(cursor)
    await directory.reach(cursor)
  }
  const directory = new Directory((ref) => payloads.load({ ref }))
  await seed(directory, collections, await seedable(store, projectors))
  void keepGoing('The directory', (until) => directory.run(store, until), { signal, log })
  return {
    ...collections,
    directory,
    settled: async (...names) =>
      within(SETTLE_MS, reach(await store.head(), names.length > 0 ? names : undefined)),
    reach: (cursor) => reach(cursor),
    positions: () =>
      Object.fromEntries([...projectors].map(([name, projector]) => [name, projector.position])),
  }
}

/** Waits until what the directory is seeded from has caught up with the log once. */
const seedable = async (store: EventStore, projectors: ReadonlyMap<string, Projector>): Promise<Cursor> => {
  const head = await store.head()
  for (const name of ['orgs', 'envs', 'projects', 'builds']) await projectors.get(name)?.reach(head)
  return head
}

const seed = async (
  directory: Directory,
  from: Pick<Views, 'orgs' | 'envs' | 'projects' | 'builds'>,
  cursor: Cursor,
): Promise<void> => {
  const builds: BuildDoc[] = []
  const wanted: Query['equal'][] = [{ deployed: true }, { build_type: 'live' }]
  for (const equal of wanted) {
    for (let offset = 0; ; offset += 100) {
      const { items } = await from.builds.find({ equal, sort: 'order', limit: 100, offset })
      builds.push(...items)
      if (items.length < 100) break
    }
  }
  await directory.seed({
    orgs: await Array.fromAsync(from.orgs.scan()),
    envs: await Array.fromAsync(from.envs.scan()),
    // In the order of the log, so that every node finds the same function first.
    projects: (await Array.fromAsync(from.projects.scan())).sort((a, b) => (a.order < b.order ? -1 : 1)),
    builds,
    cursor,
  })
}
