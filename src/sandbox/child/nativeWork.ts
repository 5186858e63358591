import { createHook, executionAsyncResource } from 'node:async_hooks'
import { runOfContext } from './endedRun.ts'
import type { Run } from './run.ts'

/** Captured before user code can replace them. */
// oxlint-disable-next-line no-restricted-properties -- the child has no clock of the service, and measures only itself
const now = performance.now.bind(performance)
const { isArray } = Array

/** The async types of requests that a thread serves, and the method that begins the work. Look-ups of names only wait. */
const BEGINNINGS: Readonly<Record<string, string | undefined>> = {
  ARGON2REQUEST: 'run',
  CHECKPRIMEREQUEST: 'run',
  CIPHERREQUEST: 'run',
  DERIVEBITSREQUEST: 'run',
  HASHREQUEST: 'run',
  KEYEXPORTREQUEST: 'run',
  KEYGENREQUEST: 'run',
  KEYPAIRGENREQUEST: 'run',
  PBKDF2REQUEST: 'run',
  RANDOMBYTESREQUEST: 'run',
  RANDOMPRIMEREQUEST: 'run',
  SCRYPTREQUEST: 'run',
  SIGNREQUEST: 'run',
  VERIFYREQUEST: 'run',
  ZLIB: 'write',
}

/** Those that begin when they are created. */
const FILES = ['FSREQCALLBACK', 'FSREQPROMISE']

type Method = (...args: unknown[]) => unknown

interface Work {
  readonly run: Run
  /** Monotonic milliseconds. */
  readonly began: number
}

/**
 * Measures how long Node's threads work for ended runs. No code of the run is called meanwhile, so no sample shows it.
 * Its hook sees no promises: it costs less than can be measured.
 */
export class NativeWork {
  /** By the request. */
  readonly #works = new WeakMap<object, Work>()
  /** What certainly uses a processor: a request of a file may wait forever. */
  readonly #computing = new Set<Work>()
  readonly #watched = new WeakSet<object>()
  /** The result of the period before, thousandths. */
  #before = 0
  #usedMs = 0
  #takenAt = now()

  /** Watches all work that begins later. */
  watch(): void {
    createHook({
      init: (_id, type, _trigger, request) => {
        const method = BEGINNINGS[type]
        if (method) this.#replace(Object.getPrototypeOf(request) as object, method)
        else if (FILES.includes(type)) this.#begin(request)
      },
      before: () => this.#end(executionAsyncResource()),
      trackPromises: false,
    }).enable()
  }

  /**
   * Takes the time since the last call, in thousandths of one thread's. It counts up to that of the period before: a single
   * request may wait for a disk or a processor, and only work in two periods in a row continues.
   */
  take(): number {
    for (const work of this.#computing) this.#account(work)
    const at = now()
    const perMille = Math.min(1000, Math.round((this.#usedMs / (at - this.#takenAt)) * 1000))
    const continuing = Math.min(perMille, this.#before)
    this.#before = perMille
    this.#usedMs = 0
    this.#takenAt = at
    return continuing
  }

  /** Replaces the method that begins work. If it returns a list, the work was done at once, and this is its result. */
  #replace(prototype: object, name: string): void {
    if (this.#watched.has(prototype)) return
    this.#watched.add(prototype)
    const original = Reflect.get(prototype, name) as Method
    const begin = (request: object) => {
      const work = this.#begin(request)
      if (work) this.#computing.add(work)
    }
    const value = function (this: object, ...args: unknown[]): unknown {
      const result = Reflect.apply(original, this, args)
      if (!isArray(result)) begin(this)
      return result
    }
    Object.defineProperty(prototype, name, { value })
  }

  #begin(request: object): Work | undefined {
    const run = runOfContext()
    if (!run) return undefined
    const work = { run, began: now() }
    this.#works.set(request, work)
    return work
  }

  #end(request: object): void {
    const work = this.#works.get(request)
    if (!work) return
    this.#account(work)
    this.#works.delete(request)
    this.#computing.delete(work)
  }

  #account({ run, began }: Work): void {
    if (run.isLeftover) this.#usedMs += now() - Math.max(began, this.#takenAt)
  }
}
