import schedule from 'node-schedule'
import { clock, virtualClock, wallNow } from '../clock.ts'
import { Heap } from '../loops/heap.ts'

/**
 * The longest time between two looks at the clock, milliseconds. A timer alone does not count the time in which the
 * machine was suspended, and does not notice that the clock was set.
 */
export const LOOK_EVERY_MS = 10_000
/** A clock that lost more than this between two looks was set back. */
const SET_BACK_MS = 1000
/** Alarms that ring in one turn of the event loop: thousands may be due at once. */
const RUNG_TOGETHER = 64
/** Alarms that were moved or cleared and are not removed from the queue yet. */
const MOST_DROPPED = 1000

interface Alarm {
  readonly key: string
  readonly at: number
  readonly ring: () => void
}

interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds that only grow. */
  monotonic(): number
}

/**
 * Alarms by key. Setting a key again moves its alarm; an instant in the past rings at once. If the clock is set back, an
 * alarm rings after the time that was left, so before its instant. After `close` no alarm is set: otherwise late work
 * would keep the process alive with its next alarm.
 */
export class Alarms {
  readonly #clock: Clock
  readonly #lookEveryMs: number
  readonly #alarms = new Map<string, Alarm>()
  /** The alarms, the earliest first, and some that were moved or cleared. */
  #queue = new Heap<Alarm>(isEarlier)
  #look: { readonly due: number; cancel(): void } | undefined
  #seen: { readonly now: number; readonly monotonic: number }
  #closed = false

  constructor({
    clock: shown = { now: clock.now, monotonic: virtualClock.monotonic },
    lookEveryMs = LOOK_EVERY_MS,
  }: { clock?: Clock; lookEveryMs?: number } = {}) {
    this.#clock = shown
    this.#lookEveryMs = lookEveryMs
    this.#seen = { now: shown.now(), monotonic: shown.monotonic() }
  }

  /** `at`: milliseconds since 1970. */
  set(key: string, at: number, ring: () => void): void {
    if (this.#closed) return
    this.#readClock()
    const alarm = { key, at: Number.isNaN(at) ? 0 : at, ring } // an unreadable time is in the past
    this.#alarms.set(key, alarm)
    this.#queue.push(alarm)
    if (this.#queue.size > this.#alarms.size + MOST_DROPPED) this.#requeue()
    this.#lookAt(alarm.at)
  }

  clear(key: string): void {
    this.#alarms.delete(key)
  }

  get size(): number {
    return this.#alarms.size
  }

  close(): void {
    this.#closed = true
    this.#look?.cancel()
    this.#alarms.clear()
  }

  #ringDue(): void {
    this.#look?.cancel()
    this.#look = undefined
    const now = this.#readClock()
    for (let left = RUNG_TOGETHER; left > 0; left--) {
      const { first } = this.#queue
      if (!first || first.at > now) break
      this.#queue.pop()
      if (this.#alarms.get(first.key) !== first) continue // moved or cleared
      this.#alarms.delete(first.key)
      first.ring()
    }
    if (this.#alarms.size > 0 && this.#queue.first) this.#lookAt(this.#queue.first.at)
  }

  /** Looks at the clock at an instant, or earlier. */
  #lookAt(at: number): void {
    const pauseMs = Math.min(Math.max(0, at - this.#seen.now), this.#lookEveryMs)
    const due = this.#seen.monotonic + pauseMs
    if (this.#closed || (this.#look && this.#look.due <= due)) return
    this.#look?.cancel()
    this.#look = { due, cancel: wakeIn(pauseMs, () => this.#ringDue()) }
  }

  #readClock(): number {
    const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()]
    const gained = now - this.#seen.now - (monotonic - this.#seen.monotonic)
    this.#seen = { now, monotonic }
    if (gained < -SET_BACK_MS) this.#requeue(gained)
    return now
  }

  /** Moves all alarms, and drops from the queue those that were moved or cleared before. */
  #requeue(byMs = 0): void {
    this.#queue = new Heap<Alarm>(isEarlier)
    for (const alarm of this.#alarms.values()) {
      const moved = { ...alarm, at: alarm.at + byMs }
      this.#alarms.set(alarm.key, moved)
      this.#queue.push(moved)
    }
  }
}

const isEarlier = (one: Alarm, other: Alarm): boolean => one.at < other.at

/** How much later than its timer a job is due, milliseconds. */
const JOB_AFTER_MS = 1000

/**
 * Calls back after a pause; returns a function that prevents it. A job of node-schedule waits for an instant of the wall
 * clock: when the clock is set back, it waits for as much longer. So a timer counts the time that passes, and whichever is
 * first calls back. After a long turn of the event loop, a timer fires early. node-schedule loses a job to which that happens: it can no
 * longer be cancelled, and ends the wait of another one. The timer must cancel it before.
 */
const wakeIn = (pauseMs: number, wake: () => void): (() => void) => {
  if (pauseMs <= 0) {
    const immediate = setImmediate(wake)
    return () => clearImmediate(immediate)
  }
  if (virtualClock.isStopped) return onceMoved(wake)
  const due = wallNow() + pauseMs
  // null when the instant has passed meanwhile
  const job: schedule.Job | null = schedule.scheduleJob(new Date(due + JOB_AFTER_MS), wake)
  const timer = setTimeout(wake, Math.max(0, Math.min(pauseMs, due - wallNow())))
  return () => {
    job?.cancel()
    clearTimeout(timer)
  }
}

/** While the clock stands still, only a move of it makes an alarm due. */
const onceMoved = (wake: () => void): (() => void) => {
  const stop = virtualClock.onMove(() => {
    stop()
    wake()
  })
  return stop
}
