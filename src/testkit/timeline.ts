/** Moves the clock of a service. T1: the clock moves only while nothing is in progress. T2: no tick or retry is passed over. */
import { isoOf, virtualClock, clock } from '../clock.ts'
import type { Node } from '../process/roles/node.ts'
import { Activity } from './activity.ts'
import { type Due, nextDue } from './due.ts'
import { msOf } from './expected.ts'

/** Ticks and retries of one `advance`. More are a mistake, such as a schedule of seconds over a year. */
const MAX_STEPS = 10_000

/** Times are in milliseconds since 1970. */
export const openTimeline = async (node: Node, timeoutMs: number) => {
  const { store, views } = node
  const activity = new Activity(await store.head())
  const closing = new AbortController()
  const following = activity.follow(node, closing.signal)
  following.catch(() => {}) // each wait rejects with it

  /** Waits until the condition holds, which is checked whenever the log was read further. */
  const until = async (holds: () => boolean, what: () => string): Promise<void> => {
    if (holds()) return
    const done = Promise.withResolvers<void>()
    const late = setTimeout(
      () =>
        done.reject(
          new Error(`Expected the service to settle within ${timeoutMs} ms; in progress: ${what()}`),
        ),
      timeoutMs,
    )
    const stop = activity.onRead(() => holds() && done.resolve())
    try {
      await Promise.race([done.promise, following.then(() => closed())])
    } finally {
      clearTimeout(late)
      stop()
    }
  }
  const isIdle = () =>
    activity.open.size === 0 && [...activity.retries.values()].every((at) => at > clock.now())
  const inProgress = () => [...new Set(activity.open.values())].slice(0, 10).join(', ') || 'retries'

  /** What ends may have begun something else, so the log must not grow meanwhile. */
  const settled = async (): Promise<void> => {
    for (;;) {
      const head = await store.head()
      await until(() => activity.hasRead(head) && isIdle(), inProgress)
      await views.reach(head)
      if ((await store.head()) === head) return
    }
  }

  const fire = async ({ at, ticks, retries }: Due): Promise<void> => {
    virtualClock.set(at)
    const waiting = () => [
      ...ticks
        .filter(({ run_id }) => !activity.wasRequested(run_id))
        .map(({ name }) => `the tick of ${name} at ${isoOf(at)}`),
      ...retries
        .filter((run_id) => activity.retries.has(run_id))
        .map((run_id) => `the retry of run ${run_id}`),
    ]
    await until(
      () => waiting().length === 0,
      () => waiting().join(', '),
    )
    await settled()
  }

  const advance = async (to: number | string | Date): Promise<string[]> => {
    const from = clock.now()
    const end = typeof to === 'number' ? from + msOf('advance(ms)', to) : msOf('advance(time)', to)
    if (end < from) throw new RangeError(`advance: expected a time from ${isoOf(from)} on, got ${isoOf(end)}`)
    await settled() // T1
    const before = activity.runs.length
    for (let steps = 0; ; steps++) {
      const due = nextDue(node, activity, { now: clock.now(), end })
      if (!due) break
      if (steps === MAX_STEPS)
        throw new RangeError(
          `advance: expected at most ${MAX_STEPS} ticks and retries, got more until ${isoOf(end)}`,
        )
      await fire(due) // T2
    }
    virtualClock.set(end)
    await settled()
    return activity.runs.slice(before).map(({ run_id }) => run_id)
  }

  return {
    get now(): Date {
      return new Date(clock.now())
    },
    settled,
    advance,
    runsIn: (stream_id: string): string[] =>
      activity.runs.filter((run) => run.stream_id === stream_id).map(({ run_id }) => run_id),
    onActivity: (listener: () => void): void => void activity.onRead(listener),
    close: () => closing.abort(),
  }
}

const closed = (): never => {
  throw new Error('The service was stopped')
}
