import os from 'node:os'

const { pid } = process
const { signals } = os.constants
const IGNORED = new Set<string>(['SIGCHLD', 'SIGCONT', 'SIGURG', 'SIGWINCH'])

/** The signal, if it ends or stops this process; undefined for any other, and for one with a listener. */
export const endingSignal = (signal: NodeJS.Signals | number): NodeJS.Signals | undefined => {
  const name = (Object.keys(signals) as NodeJS.Signals[]).find((each) =>
    [each, signals[each]].includes(signal),
  )
  return name && !IGNORED.has(name) && process.listenerCount(name) === 0 ? name : undefined
}

/** Calls `report` before code ends this process. Call it before `confine`, which builds on these functions. */
export const reportEndings = (report: () => void): void => {
  before('reallyExit', report)
  before('abort', report)
  before('_kill', (id, signal) => {
    if (id === pid && typeof signal === 'number' && endingSignal(signal)) report()
  })
}

/** Leaves out names that this version of Node lacks. */
const before = (name: string, report: (...args: unknown[]) => void): void => {
  const original: unknown = Reflect.get(process, name)
  if (typeof original !== 'function') return
  const replacement = (...args: unknown[]): unknown => {
    report(...args)
    return Reflect.apply(original, process, args) as unknown
  }
  Reflect.set(process, name, replacement)
}
