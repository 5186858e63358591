import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { Apart, ReadModels } from '../../ports/readModels.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import type { Fill, Filling } from '../../projections/fill.ts'
import { nameOf, type Projection } from '../../projections/projection.ts'
import { RESERVED_BYTES } from '../../projections/rebuildRoom.ts'
import { recordSkipped } from '../../projections/skippedFacts.ts'
import type { AboutMember, FromThread, Member, Stop, ToThread } from './messages.ts'

/** A shorter log is folded before a thread has loaded its code. */
const LEAST_FACTS = 50_000
const MAX_THREADS = 2
/** Most facts of a log are of these types. */
const FREQUENT = /^(?:Run|Event)[A-Z]/
/** The memory that a thread may take, with a margin for the rest of the process. */
const BYTES_PER_THREAD = 512 << 20
/**
 * The heap of a thread. Most objects live as long as a batch, so a large young generation saves their copies. A thread uses a
 * small part of the old generation, which V8 collects several times as often with a smaller limit.
 */
const resourceLimits = { maxOldGenerationSizeMb: 2048, maxYoungGenerationSizeMb: 96 }

interface Deps {
  readonly dataDir: string
  readonly store: Pick<EventStore, 'size'>
  readonly readModels: ReadModels
  readonly logger: Pick<Logger, 'warn'>
  readonly leastFacts?: number
  readonly reservedBytes?: number
}

/** A read model that waits for its thread. */
interface Waiting extends Filling, Member {
  readonly weight: number
  readonly settle: PromiseWithResolvers<AboutMember | null>
}

/**
 * Fills new read models of the embedded engine in threads, which use the other processors and do not delay requests. Those
 * that begin in the same turn, or wait together until a thread ends, share threads, which read and parse the log once. Where a
 * thread fails, the read model is folded in this process, which reports the error.
 */
export const openFill = ({
  dataDir,
  store,
  readModels,
  logger,
  leastFacts = LEAST_FACTS,
  reservedBytes = RESERVED_BYTES,
}: Deps): Fill => {
  const { apart } = readModels
  if (!apart) return () => Promise.resolve()
  const waiting = new Set<Waiting>()
  let running = 0
  const start = (): void => {
    const free = running === 0 ? Math.max(1, threads()) : threads() - running
    if (free <= 0) return
    const members = [...waiting]
    waiting.clear()
    for (const part of divided(members, free)) {
      running++
      void runThread({ dataDir, members: part }).then(() => {
        running--
        start()
      })
    }
  }
  const inThread = async (
    projection: Projection,
    dir: string,
    filling: Filling,
  ): Promise<AboutMember | null> => {
    const { signal } = filling
    if (signal.aborted) return null
    const { name, version } = projection
    const settle = Promise.withResolvers<AboutMember | null>()
    const leaves = filling.onNoRoom ? reservedBytes : null
    const member = { ...filling, name, version, dir, leaves, weight: weightOf(projection), settle }
    const leave = () => {
      if (waiting.delete(member)) settle.resolve(null)
    }
    waiting.add(member)
    signal.addEventListener('abort', leave)
    setImmediate(start)
    return settle.promise.finally(() => signal.removeEventListener('abort', leave))
  }
  return async (projection, filling) => {
    const name = nameOf(projection)
    if (
      ((store.size()?.facts ?? 0) < leastFacts || threads() === 0) &&
      !(await isFilling(apart, readModels, projection))
    )
      return
    const dir = apart.begin(projection)
    if (dir === null) return
    const ended = await inThread(projection, dir, filling).catch((error: unknown) => ({
      name,
      failure: messageOf(error),
    }))
    if (ended === null || 'stopped' in ended) return // the signal aborted: the next start continues
    if ('skipped' in ended) {
      await recordSkipped(readModels, name, ended.skipped)
      return apart.end(projection)
    }
    const { onNoRoom } = filling
    if ('isFull' in ended && ended.isFull && onNoRoom) return onNoRoom()
    if ('failure' in ended)
      logger.warn(`The read model ${name} could not be built in a thread and is built without one`, {
        error: ended.failure,
      })
    await readModels.drop(projection, () => Promise.resolve(true))
  }
}

/** A read model that was begun apart must be continued apart. */
const isFilling = async (apart: Apart, readModels: ReadModels, projection: Projection): Promise<boolean> => {
  const names = (await readModels.versions()).map(nameOf)
  return names.includes(nameOf(projection)) && apart.begin(projection) !== null
}

const threads = (): number =>
  Math.min(MAX_THREADS, availableParallelism(), Math.floor(process.availableMemory() / BYTES_PER_THREAD))

/** Each change of a document writes the document and its indexes. Other facts than the frequent ones cost next to nothing. */
const weightOf = ({ indexes, handles }: Projection): number =>
  (1 + indexes.length) * handles.filter((type) => FREQUENT.test(type)).length

/** Distributes the read models to at most `most` threads, the largest first. */
const divided = (all: readonly Waiting[], most: number): Waiting[][] => {
  const parts = Array.from({ length: Math.min(most, all.length) }, () => ({
    members: [] as Waiting[],
    weight: 0,
  }))
  for (const each of all.toSorted((a, b) => b.weight - a.weight)) {
    const [lightest] = parts.toSorted((a, b) => a.weight - b.weight)
    lightest?.members.push(each)
    if (lightest) lightest.weight += each.weight
  }
  return parts.map(({ members }) => members)
}

const thread = new URL(`./thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)

const runThread = async ({
  dataDir,
  members,
}: {
  readonly dataDir: string
  readonly members: readonly Waiting[]
}): Promise<void> => {
  const workerData: ToThread = {
    dataDir,
    members: members.map(({ name, version, dir, leaves }) => ({ name, version, dir, leaves })),
  }
  let worker: Worker
  try {
    worker = new Worker(thread, { workerData, resourceLimits })
  } catch (error) {
    for (const { settle } of members) settle.reject(error) // the system refuses a thread: its limit is reached
    return
  }
  const ended = new Map<string, AboutMember>()
  /** One that is given up does not wait for the others. When all have ended, the thread does. */
  const leave = (name: string, { signal, settle }: Waiting): void => {
    const last = ended.get(name)
    if (!signal.aborted) return
    if (!last) worker.postMessage({ stop: name } satisfies Stop)
    else if (ended.size < members.length) settle.resolve(last)
  }
  const byName = new Map(
    members.map((member) => {
      const name = nameOf(member)
      const stop = () => leave(name, member)
      member.signal.addEventListener('abort', stop)
      return [name, { member, stop }]
    }),
  )
  worker.on('message', (message: FromThread) => {
    if ('unreadable' in message) {
      for (const { onUnreadable } of members) onUnreadable?.(message.unreadable)
      return
    }
    const { name } = message
    const found = byName.get(name)
    if (!found) return
    if ('position' in message) return found.member.onPosition(message.position)
    ended.set(name, message)
    leave(name, found.member)
  })
  const failure = await new Promise<unknown>((resolve) => {
    worker.on('error', resolve)
    worker.on('exit', () => resolve(undefined))
  })
  for (const [name, { member, stop }] of byName) {
    const { signal, settle } = member
    signal.removeEventListener('abort', stop)
    const last = ended.get(name)
    if (last) settle.resolve(last)
    else if (signal.aborted) settle.resolve(null)
    else settle.reject(failure ?? new Error('the thread ended early'))
  }
}
