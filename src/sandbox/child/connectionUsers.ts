import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import type { Duplex } from 'node:stream'
import { refusalAfterEnd, runOfContext } from './endedRun.ts'
import { Run } from './run.ts'

/** A run and its async context at one moment. */
interface Sender {
  readonly run: Run
  readonly inContext: ReturnType<typeof AsyncLocalStorage.snapshot>
}

interface HeldWrite {
  readonly send: () => void
  readonly refuse: () => void
}

const outsideRuns = AsyncLocalStorage.snapshot()

/** Calls back when all promises and ticks that follow from the current callback of the event loop are done. */
const afterThisTurn = (callback: () => void): void => {
  const passes = (left: number): void => {
    queueMicrotask(() => process.nextTick(() => (left > 0 ? passes(left - 1) : callback())))
  }
  outsideRuns(passes, 1)
}

/** Watches until the returned function is called, which returns whether code of a run in progress was executed. */
const watchRuns = (): (() => boolean) => {
  const { endings } = Run
  let isSeen = false
  const look = () => {
    if (runOfContext()?.ended === false) isSeen = true
  }
  const hook = createHook({ init: look, before: look }).enable()
  return () => {
    hook.disable()
    return isSeen || Run.endings > endings
  }
}

/** The run of the async context, ended or not. */
export const senderOfContext = (): Sender | undefined => {
  const run = runOfContext()
  return run && { run, inContext: AsyncLocalStorage.snapshot() }
}

/**
 * The runs in progress that use one connection: they opened it or wrote to it. Pools hand connections from run to run, so
 * a connection may remain when its users have ended.
 * U1: nothing is sent in the async context of a run that has ended.
 * U2: what arrives is handled in the context of the latest user, because the opener may have ended.
 * U3: a connection without users belongs to the process once something that arrives on it serves another run. Pools send the
 * next request when a reply arrives, in the context of whichever run opened the connection.
 */
export class ConnectionUsers {
  #openedIn = AsyncLocalStorage.snapshot()
  /** A module opened it, or it serves runs that are not its users (U3). */
  #isOfProcess = runOfContext() === undefined
  readonly #contexts = new Map<Run, Sender['inContext']>()
  #latest: Run | undefined
  /** The run whose request a pool of Node is sending, in whatever context. */
  #requestOf: Run | undefined
  /** Present while something that has arrived is handled for no user. */
  #held: HeldWrite[] | undefined
  /** The socket whose writes are checked. */
  #guarded: Duplex | undefined
  readonly #onUnused: () => void

  /** `onUnused` is called after the last user has ended. */
  constructor(onUnused: () => void) {
    this.#onUnused = onUnused
    this.#use(senderOfContext())
  }

  /** Runs the function in the context for what arrives (U2). Modules keep the context in which they opened it. */
  inContext<T>(handle: () => T): T {
    const latest = this.#isOfProcess || !this.#latest ? undefined : this.#contexts.get(this.#latest)
    return (latest ?? this.#openedIn)(handle)
  }

  /** Whether what arrives is handled in the context of a run that has ended. */
  get isAbandoned(): boolean {
    return !this.#isOfProcess && this.#contexts.size === 0
  }

  /** Handles what arrives, and decides afterwards about the writes that it caused (U3). */
  receive<T>(handle: () => T): T {
    if (this.isAbandoned && !this.#held) this.#held = this.#decideAfter()
    return this.inContext(handle)
  }

  #decideAfter(): HeldWrite[] {
    const held: HeldWrite[] = []
    const hasServed = watchRuns()
    afterThisTurn(() => {
      this.#held = undefined
      if (hasServed()) {
        this.#isOfProcess = true
        this.#openedIn = outsideRuns
      }
      for (const { send, refuse } of held) {
        if (this.#isOfProcess) outsideRuns(send)
        else refuse()
      }
    })
    return held
  }

  /** Keeps a refused write until it is known whom it serves. Returns false if nothing has just arrived. */
  hold(write: HeldWrite): boolean {
    return this.#held ? this.#held.push(write) > 0 : false
  }

  /** Makes the run of the context a user, before it writes. Returns the refusal if that run has ended (U1). */
  claim(): Error | undefined {
    if (runOfContext() !== this.#latest) this.#use(senderOfContext())
    return this.#requestOf && !this.#requestOf.ended ? undefined : refusalAfterEnd()
  }

  /** Checks the writes to the socket, and no longer those to the one below it: TLS makes them in the context of its opener. */
  guard(socket: Duplex): void {
    this.unguard()
    this.#guarded = socket
    Object.defineProperty(socket, USERS, { value: this, configurable: true })
    guardWrites(socket, this)
    const push = socket.push.bind(socket)
    define(socket, 'push', (...args: Parameters<Duplex['push']>) => this.inContext(() => push(...args)))
  }

  /** Node writes to the socket on behalf of streams that are checked themselves. */
  unguard(): void {
    if (this.#guarded)
      for (const name of ['write', 'end', 'push']) Reflect.deleteProperty(this.#guarded, name)
    this.#guarded = undefined
  }

  /** A pool of Node begins to send the request of the run. */
  beginRequest(sender: Sender | undefined): void {
    this.#requestOf = sender?.run
    this.#use(sender)
  }

  /** The run has ended. */
  release(run: Run): void {
    this.#contexts.delete(run)
    if (this.#latest === run) this.#latest = [...this.#contexts.keys()].at(-1)
    const check = () => {
      if (this.#contexts.size === 0) this.#onUnused()
    }
    process.nextTick(check) // what the run wrote last is sent in this turn
  }

  /** The connection is closed. */
  close(): void {
    for (const run of this.#contexts.keys()) run.drop(this)
    this.#contexts.clear()
    this.#latest = undefined
  }

  #use(sender: Sender | undefined): void {
    if (!sender || sender.run.ended) return
    this.#contexts.delete(sender.run) // the latest one is the last
    this.#contexts.set(sender.run, sender.inContext)
    this.#latest = sender.run
    sender.run.hold(this)
  }
}

/** The key of a property, because HTTP/2 shows only a proxy of its socket. */
const USERS = Symbol('users')

/** The users of the connection of a socket, also of a socket on top of it. */
export const usersOf = (socket: object): ConnectionUsers | undefined => {
  const users: unknown = Reflect.get(socket, USERS)
  return users instanceof ConnectionUsers ? users : undefined
}

const hasData = ([first]: readonly unknown[]): boolean =>
  first !== undefined && first !== null && typeof first !== 'function'

/** Checks each write to the stream. A refused one closes it, because a protocol breaks when a part of it is missing. */
export const guardWrites = (stream: Duplex, users: ConnectionUsers): void => {
  for (const name of ['write', 'end'] as const) {
    const original = Reflect.get(Object.getPrototypeOf(stream) as object, name) as Write
    const guarded: Write = (...args) => {
      const error = hasData(args) ? users.claim() : undefined
      if (!error) return Reflect.apply(original, stream, args)
      const refuse = () => {
        const callback = args.at(-1)
        if (typeof callback === 'function') process.nextTick(callback, error)
        stream.destroy(error)
      }
      const send = () => void Reflect.apply(original, stream, args)
      if (!users.hold({ send, refuse })) refuse()
      return name === 'end' ? stream : false
    }
    define(stream, name, guarded)
  }
}

const define = (target: object, name: string, value: unknown): void => {
  Object.defineProperty(target, name, { value, configurable: true, writable: true })
}

type Write = (...args: unknown[]) => unknown
