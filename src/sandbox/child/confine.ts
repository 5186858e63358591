/**
 * Takes the operations that reach beyond this process away from user code. Node's permission model does not cover
 * them. A namespace or a separate user stops most of them too, but not every system has these.
 */
import childProcess from 'node:child_process'
import fs from 'node:fs'
import inspector from 'node:inspector'
import inspectorPromises from 'node:inspector/promises'
import { Module, syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import traceEvents from 'node:trace_events'
import util, { parseEnv } from 'node:util'
import v8 from 'node:v8'
import { endingSignal } from './endings.ts'

// oxlint-disable-next-line no-restricted-properties -- the child's own, which contains nothing of the service
const { pid, env: environment } = process

const HOME = '/tmp'

/** A function that throws, also as a class. */
export const refusal = (name: string) =>
  function refused(): never {
    const error = new Error(`A function cannot use ${name}`)
    throw Object.assign(error, { code: 'ERR_ACCESS_DENIED' })
  }

/** Call it before any user code is loaded. */
export const confine = (): void => {
  // The real environment is read by libc: HOSTALIASES or TZ would make it open files.
  const { PWD: _workingDirectory, ...env } = environment // bubblewrap adds it
  define(process, 'env', env)

  refuse(process, [
    '_debugProcess',
    '_debugEnd',
    'setuid',
    'seteuid',
    'setgid',
    'setegid',
    'setgroups',
    'initgroups',
    'dlopen',
    'binding',
    '_linkedBinding',
    'execve',
    'chdir',
  ])
  if (pid === 1) endBySignals()
  for (const name of ['kill', '_kill']) onlySelf(process, name)
  define(process, 'loadEnvFile', loadEnvFile)
  define(process, 'report', noReport)
  Object.defineProperty(process, 'title', { get: () => 'node', set: () => {}, configurable: false })

  // An unused handle of a process has an arbitrary pid, which its `kill` would signal.
  refuse(childProcess, Object.keys(childProcess))
  refuse(childProcess.ChildProcess.prototype, ['spawn', 'kill'])

  onlySelf(os, 'getPriority')
  define(os, 'networkInterfaces', () => ({})) // those of the node
  define(os, 'homedir', () => HOME) // a user of its own has none
  define(os, 'userInfo', () => ({ uid: -1, gid: -1, username: 'svc', homedir: HOME, shell: null }))
  refuse(os, ['setPriority'])
  refuse(v8, [
    'setFlagsFromString',
    'writeHeapSnapshot',
    'setHeapSnapshotNearHeapLimit',
    'setHeapProfileNearHeapLimit',
    'takeCoverage',
    'stopCoverage',
    'startCpuProfile', // a thread that continues after the run
    'startHeapProfile',
  ])
  // Nothing that a function can read changes, and no thread can notify it: these are timers that no run owns.
  refuse(fs, ['watch', 'watchFile'])
  refuse(fs.promises, ['watch'])
  refuse(Atomics, ['waitAsync'])
  refuse(util, ['debounce', 'throttle']) // Node's own timers
  for (const module of [inspector, inspectorPromises])
    refuse(module, ['open', 'close', 'url', 'waitForDebugger', 'Session'])
  refuse(traceEvents, ['createTracing'])
  refuse(Module, ['enableCompileCache', 'flushCompileCache', 'register'])
  syncBuiltinESMExports()
}

/** Restricts a function whose first argument is the id of a process to this one. */
const onlySelf = (target: object, name: string): void => {
  const original: unknown = Reflect.get(target, name)
  if (typeof original !== 'function') return
  define(target, name, (id: unknown = pid, ...rest: unknown[]): unknown =>
    id === pid
      ? (Reflect.apply(original, target, [pid, ...rest]) as unknown)
      : refusal(`${name} on another process`)(),
  )
}

/**
 * The first process of a namespace ignores signals of its own without a listener. Its end by a signal is imitated with
 * the exit code that a shell reports.
 */
const endBySignals = (): void => {
  const kill = process.kill.bind(process)
  const exit = (Reflect.get(process, 'reallyExit') as (code: number) => void).bind(process)
  const endBy = (name: NodeJS.Signals): never => {
    exit(128 + os.constants.signals[name])
    throw new Error(`Expected the end of the process by ${name}`)
  }
  process.abort = () => endBy('SIGABRT')
  process.kill = (id: number, signal: NodeJS.Signals | number = 'SIGTERM') => {
    const name = id === pid ? endingSignal(signal) : undefined
    return name ? endBy(name) : kill(id, signal)
  }
}

/** A report would describe the node. Node itself reads and writes the settings. */
const noReport = {
  reportOnFatalError: false,
  reportOnSignal: false,
  reportOnUncaughtException: false,
  excludeEnv: true,
  excludeNetwork: true,
  getReport: () => ({}),
  writeReport: refusal('process.report.writeReport'),
}

/** Node's own version writes to the real environment. */
const loadEnvFile = (path: string | URL | Buffer = '.env'): void => {
  // oxlint-disable-next-line no-restricted-properties -- the copy above
  const { env } = process
  for (const [name, value] of Object.entries(parseEnv(fs.readFileSync(path, 'utf8')))) env[name] ??= value
}

/** Leaves out names that this version of Node lacks. */
const refuse = (target: object, names: readonly string[]): void => {
  for (const name of names) if (name in target) define(target, name, refusal(name))
}

/** The value cannot be replaced, so that a later reader gets it too. */
export const define = (target: object, name: string, value: unknown): void => {
  Object.defineProperty(target, name, { value, writable: false, configurable: false, enumerable: true })
}
