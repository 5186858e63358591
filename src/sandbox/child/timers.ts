/**
 * A timer that a run creates ends with the run. Node's own modules keep theirs, because a pool of connections outlives
 * the run that opened it; so do timers that a module creates while it loads.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import promises from 'node:timers/promises'
import { getCallSites, promisify } from 'node:util'

type Timer = NodeJS.Timeout | NodeJS.Immediate
type Callback = (...args: unknown[]) => void

/** The owner of timers: a run. */
export interface TimerOwner {
  readonly ended: boolean
  /** Timers that have not fired. */
  readonly timers: Set<Timer>
}

const original = {
  setTimeout: timers.setTimeout,
  setInterval: timers.setInterval,
  setImmediate: timers.setImmediate,
  clear: (timer: Timer): void => {
    // A cleared timeout accepts `clearTimeout`, an immediate does not.
    if ('refresh' in timer) clearTimeoutOf(timer)
    else clearImmediateOf(timer)
  },
}
const { clearTimeout: clearTimeoutOf, clearImmediate: clearImmediateOf } = timers

const loading = new AsyncLocalStorage<true>()

/** Loads modules. Their timers belong to the process, also if a run loads them. */
export const whileLoading = <T>(load: () => T): T => loading.run(true, load)

/** Whether the current async context is that of a module that loads. */
export const isLoading = (): boolean => loading.getStore() === true

export const clearTimersOf = ({ timers: open }: TimerOwner): void => {
  for (const timer of open) original.clear(timer)
  open.clear()
}

/** The frames of the caller of a replaced function: this helper, the replacement, the caller. */
const CALLER = 2

export const isCalledByNode = (): boolean =>
  getCallSites(CALLER + 1)[CALLER]?.scriptName.startsWith('node:') ?? true

/**
 * Replaces the timers of this process. `runOfContext` returns the run of the current async context, ended or not. Returns
 * whether a function of `node:timers` made the timer.
 */
export const ownTimers = (runOfContext: () => TimerOwner | undefined): ((timer: object) => boolean) => {
  const owners = new WeakMap<Timer, Set<Timer>>()
  const made = new WeakSet<object>()
  const ownerOf = (): TimerOwner | undefined => {
    const run = runOfContext()
    return run && !isLoading() ? run : undefined
  }

  const start = (
    run: TimerOwner,
    schedule: (callback: Callback) => Timer,
    callback: Callback,
    repeats: boolean,
  ): Timer => {
    const timer = schedule(function fire(this: unknown, ...args) {
      if (run.ended) return original.clear(timer) // it was refreshed
      if (!repeats) run.timers.delete(timer)
      Reflect.apply(callback, this, args)
    })
    made.add(timer)
    if (run.ended) original.clear(timer)
    else {
      run.timers.add(timer)
      owners.set(timer, run.timers)
    }
    return timer
  }

  const owned = (name: 'setTimeout' | 'setInterval' | 'setImmediate') => {
    const schedule = original[name] as (callback: Callback, ...rest: unknown[]) => Timer
    const replacement = (callback: Callback, ...rest: unknown[]): Timer => {
      const run = ownerOf()
      if (!run || typeof callback !== 'function' || isCalledByNode()) {
        const timer = schedule(callback, ...rest)
        made.add(timer)
        return timer
      }
      return start(run, (fire) => schedule(fire, ...rest), callback, name === 'setInterval')
    }
    return replacement
  }

  /** Resolves when a timer fires; never, if its run ends first. */
  const waiting = (
    run: TimerOwner,
    schedule: (callback: Callback) => Timer,
    value: unknown,
    { signal, ref = true }: { signal?: AbortSignal; ref?: boolean },
  ): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const onAbort = () => {
        original.clear(timer)
        run.timers.delete(timer)
        const error = new Error('The operation was aborted', { cause: signal?.reason })
        reject(Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' }))
      }
      const onFire = () => {
        signal?.removeEventListener('abort', onAbort)
        resolve(value)
      }
      const timer = start(run, schedule, onFire, false)
      if (!ref) timer.unref()
      if (signal?.aborted) onAbort()
      else signal?.addEventListener('abort', onAbort, { once: true })
    })

  const { setTimeout: delay, setImmediate: turn, setInterval: ticks, scheduler } = promises
  const isPlain = (options: unknown): options is { signal?: AbortSignal; ref?: boolean } =>
    typeof options === 'object' &&
    options !== null &&
    (!('signal' in options) || options.signal === undefined || options.signal instanceof AbortSignal) &&
    (!('ref' in options) || options.ref === undefined || typeof options.ref === 'boolean')

  const ownedDelay = (ms?: number, value?: unknown, options: unknown = {}): Promise<unknown> => {
    const run = ownerOf()
    if (!run || !isPlain(options)) return delay(ms, value, options as object)
    return waiting(run, (fire) => original.setTimeout(fire, ms), value, options)
  }
  const ownedTurn = (value?: unknown, options: unknown = {}): Promise<unknown> => {
    const run = ownerOf()
    if (!run || !isPlain(options)) return turn(value, options as object)
    return waiting(run, (fire) => original.setImmediate(fire), value, options)
  }
  async function* ownedTicks(ms?: number, value?: unknown, options: unknown = {}): AsyncGenerator<unknown> {
    const run = ownerOf()
    if (!run || !isPlain(options)) return yield* ticks(ms, value, options as object)
    for (;;) yield await waiting(run, (fire) => original.setTimeout(fire, ms), value, options)
  }

  const timeout = AbortSignal.timeout.bind(AbortSignal)
  AbortSignal.timeout = (ms) => {
    if (!ownerOf()) return timeout(ms)
    const controller = new AbortController()
    const abort = () =>
      controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
    replacements.setTimeout(abort, ms).unref()
    return controller.signal
  }

  const replacements = {
    setTimeout: Object.assign(owned('setTimeout'), { [promisify.custom]: ownedDelay }),
    setInterval: owned('setInterval'),
    setImmediate: Object.assign(owned('setImmediate'), { [promisify.custom]: ownedTurn }),
    ...clearing(owners),
  }
  for (const [name, value] of Object.entries(replacements)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true })
    Object.defineProperty(timers, name, { value, writable: true, configurable: true, enumerable: true })
  }
  Object.assign(promises, { setTimeout: ownedDelay, setImmediate: ownedTurn, setInterval: ownedTicks })
  Object.defineProperties(scheduler, {
    wait: { value: (ms: number, options?: object) => ownedDelay(ms, undefined, options) },
    yield: { value: () => ownedTurn() },
  })
  syncBuiltinESMExports()
  return (timer) => made.has(timer)
}

/** A timer that is cleared is no longer held by its run. */
const clearing = (owners: WeakMap<Timer, Set<Timer>>) =>
  Object.fromEntries(
    (['clearTimeout', 'clearInterval', 'clearImmediate'] as const).map((name) => {
      const clear = timers[name] as (timer: unknown) => void
      return [
        name,
        (timer: unknown): void => {
          if (typeof timer === 'object' && timer !== null) owners.get(timer as Timer)?.delete(timer as Timer)
          clear(timer)
        },
      ]
    }),
  )
