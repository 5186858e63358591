import { once } from 'node:events'
import { AppError } from '../errors.ts'
import { type Background, keepGoing } from '../loops/keepGoing.ts'
import { everyDoc } from '../loops/everyDoc.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Collection, Query, ReadModels } from '../ports/readModels.ts'
import { audit, type AuditDoc, type AuditLinkDoc, auditLinks } from './audit.ts'
import { type BuildDoc, builds } from './builds.ts'
import { type ContextVariableDoc, contextVariables } from './contextVariables.ts'
import { type CallDayDoc, callDays } from './callDays.ts'
import { Directory } from './directory.ts'
import { type DomainDoc, domains } from './customDomains.ts'
import { type EventDoc, events } from './events.ts'
import { type FileTotalDoc, fileTotals } from './fileTotals.ts'
import { type FileDoc, files } from './files.ts'
import { type HoldingDoc, holdings } from './holdings.ts'
import { projectionOf } from './index.ts'
import { type ServiceKeyDoc, serviceKeys, type SessionDoc, sessions } from './issued.ts'
import { nameOf } from './projection.ts'
import type { Progress } from './projectors.ts'
import { type ProjectDoc, projects } from './projects.ts'
import { type RunDoc, runs } from './runs.ts'
import { type ProvedDomainDoc, provedDomains } from './provedDomains.ts'
import type { RunDayDoc } from './runDays.ts'
import type { RunStatsDoc } from './runStats.ts'
import { type ApiKeyDoc, apiKeys, type EnvDoc, envs, type OrgDoc, orgs } from './tenants.ts'
import { type SkippedFactDoc, skippedFacts } from './skippedFacts.ts'
import { type UploadDoc, uploads } from './uploads.ts'
import { type WaitingRunDoc, waitingRuns } from './waitingRuns.ts'
import { type WorkerDoc, workers } from './workers.ts'
import type { Payloads } from '../content/payloads.ts'
import type { Cursor } from '../events/event.ts'

/** The name of a read model, as `Views` has it. */
export type ViewName = keyof typeof projectionOf
const viewNames = Object.keys(projectionOf) as ViewName[]

/** The document type of each read model. */
interface Docs {
  runs: RunDoc
  waitingRuns: WaitingRunDoc
  events: EventDoc
  projects: ProjectDoc
  builds: BuildDoc
  files: FileDoc
  uploads: UploadDoc
  contextVariables: ContextVariableDoc
  orgs: OrgDoc
  envs: EnvDoc
  apiKeys: ApiKeyDoc
  sessions: SessionDoc
  serviceKeys: ServiceKeyDoc
  domains: DomainDoc
  provedDomains: ProvedDomainDoc
  workers: WorkerDoc
  callDays: CallDayDoc
  fileTotals: FileTotalDoc
  holdings: HoldingDoc
  audit: AuditDoc
  auditLinks: AuditLinkDoc
}
export type DocOf<N extends ViewName> = Docs[N]

type Collections = { readonly [N in ViewName]: Collection<DocOf<N>> }

/** The read side of one node: its read models, and the directory kept in memory. */
export interface Views extends Collections {
  readonly directory: Directory
  /** The statistics of runs, which `runs` contains as summaries. */
  readonly runStats: Collection<RunStatsDoc>
  readonly runDays: Collection<RunDayDoc>
  /** The facts that read models lack. */
  readonly skippedFacts: Collection<SkippedFactDoc>
  /** Resolves when every read model, or those named, contain everything appended so far (I2). */
  settled(...names: readonly ViewName[]): Promise<void>
  /** Resolves when every read model, or those named, contain everything up to the cursor. */
  reach(cursor: Cursor, ...names: readonly ViewName[]): Promise<void>
  /**
   * Resolves with a position up to which the read model contains the log: at once if it was complete before, however far it
   * is behind now, or when the signal aborts.
   */
  completeTo(name: ViewName, signal: AbortSignal): Promise<Cursor>
}

/**
 * The time after which a reader that waits for the read models is refused with `unavailable`. It is longer than another node
 * takes to continue after a failover.
 */
const SETTLE_MS = 10_000

/** A cursor before those of all events. A read model has it when it has been complete once. */
const FIRST: Cursor = '0'

export const openViews = async (
  {
    store,
    readModels,
    payloads,
    progress,
    ...background
  }: {
    store: EventStore
    readModels: ReadModels
    payloads: Payloads
    progress: Progress
  } & Omit<Background, 'signal'>,
  signal: AbortSignal,
): Promise<Views> => {
  const collections: Collections = {
    runs: readModels.reader(runs),
    waitingRuns: readModels.reader(waitingRuns),
    events: readModels.reader(events),
    projects: readModels.reader(projects),
    builds: readModels.reader(builds),
    files: readModels.reader(files),
    uploads: readModels.reader(uploads),
    contextVariables: readModels.reader(contextVariables),
    orgs: readModels.reader(orgs),
    envs: readModels.reader(envs),
    apiKeys: readModels.reader(apiKeys),
    sessions: readModels.reader(sessions),
    serviceKeys: readModels.reader(serviceKeys),
    domains: readModels.reader(domains),
    provedDomains: readModels.reader(provedDomains),
    workers: readModels.reader(workers),
    callDays: readModels.reader(callDays),
    fileTotals: readModels.reader(fileTotals),
    holdings: readModels.reader(holdings),
    audit: readModels.reader(audit),
    auditLinks: readModels.reader(auditLinks),
  }
  const behind = (cursor: Cursor, names: readonly ViewName[]): string[] =>
    (names.length > 0 ? names : viewNames)
      .map((name) => nameOf(projectionOf[name]))
      .filter((name) => progress.position(name) < cursor)
  const reach = async (cursor: Cursor, names: readonly string[], until: AbortSignal): Promise<void> => {
    await Promise.all([
      directory.reach(cursor, until),
      ...names.map((name) => progress.reach(name, cursor, until)),
    ])
  }
  const directory = new Directory((ref) => payloads.loadList(ref))
  const head = await seedable(store, progress, signal)
  await seed(directory, collections, head)
  void keepGoing('The directory', (until) => directory.run(store, until), { ...background, signal })
  // After an upgrade, the read model is built from the whole log: no request waits for it.
  const remember = async (until: AbortSignal) => {
    await reach(head, [nameOf(provedDomains)], until)
    for await (const doc of collections.provedDomains.scan())
      if (doc.was_proved) directory.domains.remember(doc)
    if (!until.aborted) await once(until, 'abort')
  }
  void keepGoing('The reading of former custom domains', remember, { ...background, signal })
  return {
    ...collections,
    directory,
    runStats: readModels.reader<RunStatsDoc>(runs),
    runDays: readModels.reader<RunDayDoc>(runs),
    skippedFacts: readModels.reader(skippedFacts),
    settled: async (...names) => {
      const head = await store.head()
      const waited = behind(head, names)
      if (waited.length === 0 && directory.position >= head) return
      const late = AbortSignal.timeout(SETTLE_MS)
      await reach(head, waited, late)
      if (late.aborted) throw new AppError('unavailable', 'The read models are behind the log')
    },
    reach: (cursor, ...names) => reach(cursor, behind(cursor, names), signal),
    completeTo: async (view, until) => {
      const name = nameOf(projectionOf[view])
      await progress.reach(name, FIRST, until)
      return progress.position(name)
    },
  }
}

/** Waits until the read models that seed the directory have caught up with the log once. */
const seedable = async (store: EventStore, progress: Progress, signal: AbortSignal): Promise<Cursor> => {
  const head = await store.head()
  for (const projection of [orgs, envs, projects, builds, domains]) {
    await progress.reach(nameOf(projection), head, signal)
  }
  return head
}

const seed = async (
  directory: Directory,
  from: Pick<Views, 'orgs' | 'envs' | 'projects' | 'builds' | 'domains'>,
  cursor: Cursor,
): Promise<void> => {
  const builds: BuildDoc[] = []
  const wanted: Query['equal'][] = [{ deployed: true }, { build_type: 'live' }]
  for (const equal of wanted) {
    for await (const build of everyDoc(from.builds, { id: 'build_id', equal, sort: 'order' }))
      builds.push(build)
  }
  await directory.seed({
    orgs: await Array.fromAsync(from.orgs.scan()),
    envs: await Array.fromAsync(from.envs.scan()),
    // In the order of the log, so that every node finds the same function first.
    projects: (await Array.fromAsync(from.projects.scan())).sort((a, b) => (a.order < b.order ? -1 : 1)),
    builds,
    domains: await Array.fromAsync(from.domains.scan()),
    cursor,
  })
}
