import { syncBuiltinESMExports } from 'node:module'
import perfHooks, { type EventLoopMonitorOptions } from 'node:perf_hooks'
import { define, refusal } from './confine.ts'
import { runOfContext } from './endedRun.ts'
import { isCalledByNode } from './timers.ts'

/**
 * Takes the timers away that would belong to no run: those that user code makes by their classes or imitates, and Node's own.
 * `isMade` reports whether a function of `node:timers` made the timer.
 */
export const closeNodeTimers = (isMade: (timer: object) => boolean): void => {
  const timeout = prototypeOf(setTimeout(() => {}, 0))
  close(timeout, 'Timeout', 'setTimeout')
  close(prototypeOf(setImmediate(() => {})), 'Immediate', 'setImmediate')
  const refresh = Reflect.get(timeout, 'refresh') as (this: object) => unknown
  define(timeout, 'refresh', function (this: object): unknown {
    if (!isMade(this) && !isCalledByNode()) refusal('a timer that it made itself: call setTimeout')()
    return Reflect.apply(refresh, this, [])
  })
  const { monitorEventLoopDelay } = perfHooks
  define(perfHooks, 'monitorEventLoopDelay', (options?: EventLoopMonitorOptions) => {
    if (runOfContext()) refusal('monitorEventLoopDelay in a run: call it where the module loads')()
    return monitorEventLoopDelay(options)
  })
  syncBuiltinESMExports()
}

const prototypeOf = (timer: NodeJS.Timeout | NodeJS.Immediate): object => {
  if ('refresh' in timer) clearTimeout(timer)
  else clearImmediate(timer)
  return Object.getPrototypeOf(timer) as object
}

const close = (prototype: object, name: string, instead: string): void => {
  const closed = Object.defineProperty(refusal(`the class ${name}: call ${instead}`), 'name', { value: name })
  closed.prototype = prototype
  define(prototype, 'constructor', closed)
}
