import { setTimeout as delay } from 'node:timers/promises'
import { isRetryable, messageOf } from '../errors.ts'
import type { Cursor } from '../events/event.ts'
import { type Background, keepGoing } from '../loops/keepGoing.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { ReadModels } from '../ports/readModels.ts'
import { compareDocuments } from './compareDocuments.ts'
import type { Projection } from './projection.ts'
import { Projector, type ProjectorOptions } from './projector.ts'
import type { Projectors } from './projectors.ts'
import { isOver, type RebuildRecord, Rebuilds } from './rebuilds.ts'
import { renameSkipped } from './skippedFacts.ts'

/** Pauses between looks for requests, and between reports of the progress, milliseconds. */
const LOOK_MS = 500

interface Deps extends Omit<Background, 'signal'>, Pick<ProjectorOptions, 'onSkipped'> {
  readonly readModels: ReadModels
  readonly store: Pick<EventStore, 'head'>
  readonly projectors: Pick<Projectors, 'pausing' | 'projectionOf' | 'reads'>
  readonly lookMs?: number
}

/** The collection of the new documents. It remains after a crash, and is continued. */
const shadowOf = (projection: Projection): Projection => ({ ...projection, name: `${projection.name}~new` })

/**
 * Rebuilds the read models that were requested, until the signal aborts. The former documents are served and kept up to
 * date until the new ones contain the same events and take their place (I8). Several rebuilds share their reads of the log.
 */
export const rebuildRequested = async (deps: Deps, signal: AbortSignal): Promise<void> => {
  const rebuilds = await Rebuilds.open(deps.readModels)
  const working = new Map<string, Promise<void>>()
  while (!signal.aborted) {
    for (const { name } of await rebuilds.all()) {
      if (working.has(name)) continue
      const work = rebuild(deps, { rebuilds, name }, signal).finally(() => working.delete(name))
      work.catch(() => {}) // an engine failed: the next look continues the rebuild
      working.set(name, work)
    }
    await delay(deps.lookMs ?? LOOK_MS, undefined, { signal }).catch(() => {})
  }
  await Promise.allSettled(working.values())
}

const rebuild = async (
  deps: Deps,
  { rebuilds, name }: { readonly rebuilds: Rebuilds; readonly name: string },
  signal: AbortSignal,
): Promise<void> => {
  const { projectors, readModels } = deps
  const record = await rebuilds.record(name)
  if (!record || isOver(record.doc)) return
  const projection = projectors.projectionOf(name)
  if (!projection)
    return record.update({ state: 'failed', error: 'This build of svc has no such read model' })
  await record.update({ state: 'building' })
  try {
    await replaceDocuments(deps, { projection, record }, signal)
  } catch (error) {
    if (signal.aborted || isRetryable(error)) throw error
    await readModels.drop(shadowOf(projection), () => Promise.resolve(true))
    await record.update({ state: 'failed', error: messageOf(error) })
  }
}

const replaceDocuments = async (
  { readModels, projectors, store, onSkipped, ...background }: Deps,
  { projection, record }: { readonly projection: Projection; readonly record: RebuildRecord },
  signal: AbortSignal,
): Promise<void> => {
  const { name, verify } = record.doc
  const shadow = shadowOf(projection)
  const projector = new Projector(shadow, { readModels, store: projectors.reads, onSkipped })
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  const failed = Promise.withResolvers<never>()
  const onGivenUp = (reason: string) => failed.reject(new Error(reason))
  const running = keepGoing(`The rebuild of ${name}`, (part) => projector.run(part), {
    ...background,
    onGivenUp,
    signal: until,
  })
  const reached = (cursor: Cursor) => Promise.race([projector.reach(cursor, signal), failed.promise])
  const reporting = reportProgress()
  try {
    await reached(await store.head())
    signal.throwIfAborted()
    if (verify) {
      await record.update({ state: 'comparing' })
      const [before, after] = [await readModels.writer(projection), await readModels.writer(shadow)]
      const { differences, first } = await compareDocuments(before, after, signal)
      await record.update({ differences, first_differences: first })
    }
    await projectors.pausing(name, async (builtTo) => {
      await reached(builtTo)
      stop.abort()
      await Promise.all([running, reporting])
      signal.throwIfAborted()
      await (await readModels.writer(shadow)).write([], projector.builtTo) // an idle projector does not store each position
      await readModels.replace(projection, shadow)
      await renameSkipped(readModels, { from: projector.name, to: name })
    })
    await record.update({ state: 'done', position: projector.builtTo })
  } finally {
    stop.abort()
    await Promise.all([running, reporting])
  }

  async function reportProgress(): Promise<void> {
    while (!until.aborted) {
      const position = projector.builtTo
      if (position !== record.doc.position) await record.update({ position })
      await delay(LOOK_MS, undefined, { signal: until }).catch(() => {})
    }
  }
}
