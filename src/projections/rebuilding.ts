import { setTimeout as delay } from 'node:timers/promises'
import { AppError, isRetryable, messageOf } from '../errors.ts'
import type { Cursor } from '../events/event.ts'
import { type Background, keepGoing } from '../loops/keepGoing.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { ReadModels } from '../ports/readModels.ts'
import { Comparison } from './compareDocuments.ts'
import { nameOf, type Projection } from './projection.ts'
import { Projector, type ProjectorOptions } from './projector.ts'
import type { Projectors } from './projectors.ts'
import { RebuildRoom } from './rebuildRoom.ts'
import { isOver, type RebuildDoc, Rebuilds } from './rebuilds.ts'
import { shadowOf } from './shadow.ts'
import type { SharedReads } from './sharedReads.ts'
import { recordSkipped, skippedOf } from './skippedFacts.ts'
import { upTo } from './upTo.ts'

/** Pauses between looks for requests, and between reports of the progress, milliseconds. */
const LOOK_MS = 500
/** The time in which the served documents should reach the position of the new ones, milliseconds. */
const REACH_MS = 5000

interface Deps
  extends
    Omit<Background, 'signal'>,
    Pick<ProjectorOptions, 'onSkipped'>,
    Partial<Pick<ProjectorOptions, 'fill'>> {
  readonly readModels: ReadModels
  readonly store: Pick<EventStore, 'head'>
  readonly projectors: Pick<Projectors, 'pausing' | 'projectionOf' | 'reach'> & {
    readonly reads: Pick<EventStore, 'subscribe'> & Pick<SharedReads, 'expect'>
  }
  /** The names of the versions that living nodes read; undefined if there is one node. */
  readonly namesRead?: () => Promise<ReadonlySet<string>>
  readonly lookMs?: number
}

/** One rebuild. */
interface Work {
  readonly rebuilds: Rebuilds
  /** As it was when the work began. */
  readonly requested: RebuildDoc
  readonly projection: Projection
  /** Called when it reads the log. */
  readonly onBegun: () => void
}

/**
 * Rebuilds the read models that were requested, until the signal aborts. The former documents are served and kept up to
 * date until the new ones contain the same events and take their place (I8). Several rebuilds share their reads of the log.
 */
export const rebuildRequested = async (deps: Deps, signal: AbortSignal): Promise<void> => {
  const rebuilds = await Rebuilds.open(deps.readModels)
  const working = new Map<string, Promise<void>>()
  const ending = new AbortController()
  const until = AbortSignal.any([signal, ending.signal])
  try {
    while (!signal.aborted) {
      for (const { name } of await rebuilds.all()) {
        if (working.has(name)) continue
        const onBegun = deps.projectors.reads.expect()
        const work = rebuild(deps, { rebuilds, name, onBegun }, until).finally(() => {
          onBegun()
          working.delete(name)
        })
        work.catch(() => {}) // an engine failed: the next look continues the rebuild
        working.set(name, work)
      }
      await delay(deps.lookMs ?? LOOK_MS, undefined, { signal }).catch(() => {})
    }
  } finally {
    ending.abort() // two rebuilds of one read model would replace it twice, the second time by nothing
    await Promise.allSettled(working.values())
  }
}

const rebuild = async (
  deps: Deps,
  { rebuilds, name, onBegun }: Pick<Work, 'rebuilds' | 'onBegun'> & { readonly name: string },
  signal: AbortSignal,
): Promise<void> => {
  const { projectors, readModels, namesRead = () => Promise.resolve(new Set()) } = deps
  const requested = await rebuilds.get(name)
  if (!requested || isOver(requested)) return
  const projection = projectors.projectionOf(name)
  if (!projection) {
    if ((await namesRead()).has(name)) return // a node of another build builds it
    return rebuilds.change(name, { state: 'failed', error: 'This build of svc has no such read model' })
  }
  const work: Work = { rebuilds, requested, projection, onBegun }
  try {
    if (isCancelled(requested)) throw new Error(CANCELLED)
    if (await begins(deps, work)) await replaceDocuments(deps, work, signal)
  } catch (error) {
    if (signal.aborted || isRetryable(error)) throw error
    await dropNew(readModels, work)
    await rebuilds.change(name, { state: 'failed', error: messageOf(error) })
  }
}

/** The error of a rebuild that an operator has given up. */
const CANCELLED = 'It was cancelled'

/** One that replaces the documents may have done so in part: it is completed. */
const isCancelled = ({ cancelled, state }: RebuildDoc): boolean => cancelled === true && state !== 'replacing'

/** Drops the new documents. The state changes first: while it is `replacing`, new documents that are gone are in their place. */
const dropNew = async (
  readModels: ReadModels,
  { rebuilds, requested, projection }: Pick<Work, 'rebuilds' | 'requested' | 'projection'>,
): Promise<void> => {
  await rebuilds.change(requested.name, ({ state }) => (state === 'replacing' ? { state: 'waiting' } : {}))
  await readModels.drop(shadowOf(projection), () => Promise.resolve(true))
}

/**
 * Decides what a crash has left. A request begins without documents of an earlier rebuild. One that was interrupted while it
 * replaced the documents is complete if the new ones are in their place. If they are not, only part of the replacement may
 * have happened, so it begins again. Resolves with whether there is something to do.
 */
const begins = async (deps: Deps, work: Work): Promise<boolean> => {
  const { readModels } = deps
  const { rebuilds, requested, projection } = work
  const { name, state } = requested
  const shadow = shadowOf(projection)
  if (state === 'waiting' || state === 'replacing') {
    await readModels.writer(projection) // completes an exchange that the crash has interrupted
    const isThere = (await readModels.versions()).some((version) => nameOf(version) === nameOf(shadow))
    if (isThere) await dropNew(readModels, work)
    else if (state === 'replacing') {
      await readModels.replace(projection, shadow) // completes what is left of it
      await recordLacking(deps, projection, requested)
      await end({ rebuilds, requested })
      return false
    }
  }
  await rebuilds.change(name, { state: 'building' })
  return true
}

/** An interruption after the exchange repeats it. The former documents may have lacked other facts. */
const recordLacking = async (
  { readModels }: Pick<Deps, 'readModels'>,
  projection: Projection,
  { position, lacking }: Pick<RebuildDoc, 'position' | 'lacking'>,
): Promise<void> => {
  if (!lacking) return // an earlier build has begun the exchange
  await recordSkipped(readModels, nameOf(projection), lacking, position)
  await recordSkipped(readModels, nameOf(shadowOf(projection)), [])
}

/** A request to verify that came too late is a request of its own. */
const end = ({ rebuilds, requested: { name } }: Pick<Work, 'rebuilds' | 'requested'>): Promise<void> =>
  rebuilds.change(name, ({ verify, differences }) => ({
    state: verify && differences === null ? 'waiting' : 'done',
    error: null,
    lacking: [],
  }))

const replaceDocuments = async (deps: Deps, work: Work, signal: AbortSignal): Promise<void> => {
  const { readModels, projectors, onSkipped } = deps
  const { rebuilds, requested, projection } = work
  const { name } = requested
  const shadow = shadowOf(projection)
  const { builtTo, comparison } = await build(deps, work, signal)
  // The served documents reach the position of the new ones first, so that both can end at the same event.
  await projectors.reach(name, builtTo, AbortSignal.any([signal, AbortSignal.timeout(REACH_MS)]))
  await projectors.pausing(name, async (served) => {
    await refuseLate(deps, work)
    const position = builtTo < served ? served : builtTo
    if (builtTo < served) {
      const store = upTo(projectors.reads, served)
      await new Projector(shadow, { readModels, store, onSkipped, lingerMs: () => 0 }).run(signal)
      signal.throwIfAborted()
    }
    const next = await readModels.writer(shadow)
    await next.write([], position) // an idle projector does not store each position
    const found = await comparison?.end()
    await refuseLate(deps, work)
    const lacking = await skippedOf(readModels, nameOf(shadow))
    await rebuilds.change(name, { state: 'replacing', position, lacking, ...found })
    signal.throwIfAborted()
    if (!(await readModels.replace(projection, shadow))) await again(work)
    await recordLacking(deps, projection, { position, lacking })
  })
  await end(work)
}

/** Another node projects the same read model, and the served documents are ahead. The new ones continue to follow the log. */
const again = async ({ rebuilds, requested: { name } }: Work): Promise<never> => {
  await rebuilds.change(name, ({ state }) => (state === 'replacing' ? { state: 'building' } : {}))
  throw new AppError('unavailable', `Another node was ahead of the rebuild of ${name}`)
}

/** Two nodes work at the same time if one was paused. The other one may have moved the new documents to their place. */
const refuseLate = async ({ readModels }: Deps, { rebuilds, requested, projection }: Work): Promise<void> => {
  const current = await rebuilds.get(requested.name)
  const isCurrent = current && !isOver(current) && current.requested_at === requested.requested_at
  if (isCurrent && (await (await readModels.writer(shadowOf(projection))).checkpoint()) !== null) return
  throw new AppError('unavailable', `Another node has completed the rebuild of ${requested.name}`)
}

interface Built {
  readonly builtTo: Cursor
  readonly comparison: Comparison | null
}

/**
 * Folds the log into the new documents until they contain every event so far, while the disk has room. They are compared while they follow the log,
 * if that was requested.
 */
const build = async (
  {
    readModels,
    projectors,
    store,
    onSkipped,
    fill = () => Promise.resolve(),
    lookMs = LOOK_MS,
    ...background
  }: Deps,
  { rebuilds, requested: { name }, projection, onBegun }: Work,
  signal: AbortSignal,
): Promise<Built> => {
  const shadow = shadowOf(projection)
  const room = RebuildRoom.of(readModels, lookMs)
  const projector = new Projector(shadow, {
    readModels,
    store: projectors.reads,
    onSkipped,
    fill: (each, filling) => fill(each, room ? { ...filling, onNoRoom: () => room.stop() } : filling),
  })
  const project = (part: AbortSignal) => projector.run(part, onBegun)
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {}) // it may fail before it is awaited
  const onGivenUp = (reason: string) => failed.reject(new Error(reason))
  const running = keepGoing(
    `The rebuild of ${name}`,
    (part) => (room ? room.run(project, part) : project(part)),
    {
      ...background,
      onGivenUp,
      signal: until,
    },
  )
  const reporting = report()
  let comparison: Comparison | null
  try {
    const head = await store.head()
    await Promise.race([projector.reach(head, signal), failed.promise])
    signal.throwIfAborted()
    comparison = await Promise.race([compared(), failed.promise])
  } finally {
    stop.abort()
    await Promise.all([running, reporting])
  }
  return { builtTo: projector.builtTo, comparison }

  async function compared(): Promise<Comparison | null> {
    const { verify = false, differences = null } = (await rebuilds.get(name)) ?? {}
    if (!verify || differences !== null) return null
    await rebuilds.change(name, { state: 'comparing' })
    const both = new Comparison(await readModels.writer(projection), await readModels.writer(shadow))
    await both.run(until)
    return both
  }

  async function report(): Promise<void> {
    let reported: Pick<RebuildDoc, 'position' | 'error'> | undefined
    let isWaiting = false
    while (!until.aborted) {
      const requested = await rebuilds.get(name).catch(() => null)
      if (requested && isCancelled(requested)) failed.reject(new Error(CANCELLED))
      const now = { position: projector.builtTo, error: room?.lacking ?? null }
      if (now.error !== null && !isWaiting)
        background.logger.warn(`The rebuild of ${name} waits, and the former documents are served`, {
          reason: now.error,
        })
      isWaiting = now.error !== null
      if (now.position !== reported?.position || now.error !== reported.error)
        await rebuilds.change(name, now).then(
          () => (reported = now),
          () => {}, // an engine failed: the next report tries again
        )
      await delay(lookMs, undefined, { signal: until }).catch(() => {})
    }
  }
}
