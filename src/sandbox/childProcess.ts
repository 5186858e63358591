import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { constants, getPriority } from 'node:os'
import type { Readable } from 'node:stream'
import { messageOf } from '../errors.ts'
import { values } from '../loops/slices.ts'
import { FrameOrder, SLICED_BYTES } from './frameOrder.ts'
import { frameReader, frameWriter, ProtocolViolation } from './frames.ts'
import type { SandboxOptions } from './limits.ts'
import type { ChildCode } from './childCode.ts'
import {
  type ChildFrame,
  largeFrameSteps,
  type ParentFrame,
  parseChildFrame,
  parseLargeChildFrame,
} from './protocol.ts'
import { nodeArgs } from './processSandbox.ts'
import { openProcessorUse, type ProcessorUse } from './processorUse.ts'

/** The reason for the end of a child that the parent did not kill. */
export interface Ending {
  readonly code: 'worker_lost' | 'protocol_violation'
  readonly message: string
  /** The id in the forbidden frame. */
  readonly frameId?: number | undefined
  /** The end of its standard error. */
  readonly output: string
}

interface Listener {
  /**
   * `size`: characters of JSON. Later frames wait until its promise resolves. If it throws or rejects with
   * `ProtocolViolation`, the child is killed.
   */
  onFrame(frame: ChildFrame, size: number): void | Promise<void>
  /** Called once, after the last frame. */
  onEnd(ending: Ending): void
}

export interface SandboxedProcess {
  /** Sends a frame that is already JSON. Throws a RangeError if it is larger than `MAX_FRAME`. */
  sendJson(json: string): void
  send(frame: ParentFrame): void
  /** Pauses or resumes reading from the child. */
  listen(yes: boolean): void
  /** Kills the process and all processes that it started, at once. */
  kill(): void
  /** Stops the process until `thaw`: it uses no CPU and runs no timers. */
  freeze(): void
  thaw(): void
  /** True after `kill` and after a protocol violation. */
  readonly killed: boolean
  /** Whether a large frame is checked, so that later ones wait. */
  readonly isChecking: boolean
  /** Bytes that were sent and that the child has not read. */
  readonly unread: number
  /** The use of processors; null if it is not known. */
  processorUse(): ProcessorUse | null
}

const STDERR_TAIL = 4 << 10

export interface Start {
  /** The unpacked build. */
  readonly dir: string
  readonly code: ChildCode
  readonly options: SandboxOptions
  /** The number of children that the organization has already. */
  readonly siblings?: number
  /** Receives the service's end of fd 4, over which all connections of user code are made. */
  readonly openEgress?: ((pipe: Socket) => void) | undefined
}

/** Frames that a child sent before its end must arrive within this time after it. */
const DRAIN_MS = 1000

/** A child that closed its pipe is killed after this time. bubblewrap reports the exit code of its child within it. */
const EXIT_MS = 500

/**
 * Owns the operating system process of one child and its pipe. Every frame is checked before the listener
 * gets it. A failure of any kind, even a failed start, is reported by `onEnd` and never thrown.
 */
export const startProcess = (
  { dir, code, options, siblings = 0, openEgress }: Start,
  listener: Listener,
): SandboxedProcess => {
  const neverStarted = (message: string): SandboxedProcess => {
    user?.release()
    setImmediate(() => listener.onEnd({ code: 'worker_lost', message, output: message }))
    return {
      sendJson() {},
      send() {},
      listen() {},
      kill() {},
      freeze() {},
      thaw() {},
      killed: true,
      isChecking: false,
      unread: 0,
      processorUse: () => null,
    }
  }
  const user = options.users?.take()
  const nicer = NICER + Math.min(siblings, MOST_NICER_FOR_SIBLINGS)
  const {
    args: [command, ...args],
    input,
  } = options.sandbox.start({
    node: options.node,
    nodeArgs: nodeArgs(options.heapMb),
    entry: code.entry,
    dirs: [dir, code.dir],
    dataMb: options.dataMb,
    ownUser: user !== undefined,
    nicer,
  })
  let child: ChildProcess
  try {
    child = spawn(command, args, {
      cwd: dir,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', TZ: 'UTC' },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', ...(input ? (['pipe'] as const) : [])],
      ...(user && { uid: user.uid, gid: user.uid }),
    })
  } catch (error) {
    return neverStarted(messageOf(error))
  }
  // The type knows the first three only. Without file descriptors, there are none.
  const [, , , pipe, egress, inputPipe] = (child.stdio ?? []) as unknown as readonly (Socket | undefined)[]
  if (!pipe || !egress) {
    child.on('error', () => {}) // it follows, and would end the service if nobody listened
    return neverStarted('The service has no file descriptors left')
  }
  if (input) inputPipe?.on('error', () => {}).end(input)
  lowerSession(child, nicer)
  const forget = child.pid === undefined ? undefined : options.recordChild?.(child.pid)
  const writer = frameWriter((bytes) => pipe.write(bytes))
  let violation: Ending | undefined
  let stderr = ''
  let exited = false
  let piped = false
  let ended = false
  let killed = false
  let isListening = true
  let drain: NodeJS.Timeout | undefined
  let exiting: NodeJS.Timeout | undefined

  const violate = (error: unknown) => {
    const frameId = error instanceof ProtocolViolation ? error.frameId : undefined
    violation ??= { code: 'protocol_violation', message: messageOf(error), frameId, output: stderr }
    pipe.removeAllListeners('data').resume()
    stop()
  }

  const stop = () => {
    killed = true
    pauseOrResume()
    signal(child, 'SIGKILL')
  }

  /** A paused pipe does not report its end. */
  const pauseOrResume = () => {
    if (killed || (isListening && !order.isBusy)) pipe.resume()
    else pipe.pause()
  }

  const onError = (error: unknown) => {
    if (!(error instanceof ProtocolViolation)) throw error
    violate(error)
  }
  const order = new FrameOrder({
    onChange: () => {
      pauseOrResume()
      end()
    },
    onError,
  })
  const takeLarge = (bytes: Buffer): void | Promise<void> => {
    if (violation) return
    if (bytes.length <= SLICED_BYTES) return listener.onFrame(parseLargeChildFrame(bytes), bytes.length)
    return values.complete(largeFrameSteps(bytes)).then((frame) => {
      if (!violation) return listener.onFrame(frame, bytes.length)
    })
  }
  const read = frameReader(
    (json) => order.add(() => (violation ? undefined : listener.onFrame(parseChildFrame(json), json.length))),
    (bytes) => order.add(() => takeLarge(bytes)),
  )
  pipe.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (error) {
      onError(error)
    }
  })

  const end = () => {
    if (ended || !exited || !piped || order.isBusy) return
    ended = true
    clearTimeout(drain)
    clearTimeout(exiting)
    forget?.()
    user?.release()
    listener.onEnd(violation ?? { code: 'worker_lost', message: deathOf(child, stderr), output: stderr })
  }
  const onPiped = () => {
    piped = true
    killed = true // without the pipe a living child cannot be used
    exiting = setTimeout(stop, EXIT_MS)
    end()
  }
  const onExited = () => {
    exited = true
    egress.destroy()
    drain = setTimeout(() => pipe.destroy(), DRAIN_MS)
    end()
  }
  pipe.on('error', () => {}) // the child closed its end; 'close' follows
  egress.on('error', (error) => {
    if (error instanceof ProtocolViolation) violate(error)
  })
  if (openEgress) openEgress(egress)
  else egress.destroy() // user code that connects learns at once that it has no network
  pipe.on('close', onPiped)
  child.on('exit', onExited)
  child.on('error', (error) => {
    if (child.pid !== undefined) return
    stderr = error.message
    onExited()
  })

  readSlowly(child.stdout, () => {})
  readSlowly(child.stderr, (chunk) => {
    stderr = (stderr + chunk.toString('latin1')).slice(-STDERR_TAIL)
  })

  return {
    sendJson: writer.send,
    send: (frame) => writer.send(JSON.stringify(frame)),
    listen: (yes) => {
      isListening = yes
      pauseOrResume()
    },
    kill: stop,
    freeze: () => signal(child, 'SIGSTOP'),
    thaw: () => signal(child, 'SIGCONT'),
    get killed() {
      return killed
    },
    get isChecking() {
      return order.isBusy
    },
    get unread() {
      return pipe.writableLength + writer.queued()
    },
    processorUse: openProcessorUse(child.pid),
  }
}

/** Output outside any run is read at this rate, because a full pipe would block the child and a flood the service. */
const READ_BYTES = 512 << 10
const READ_PAUSE_MS = 50

const readSlowly = (stream: Readable | null, onChunk: (chunk: Buffer) => void): void => {
  let left = READ_BYTES
  stream
    ?.on('error', () => {})
    .on('data', (chunk: Buffer) => {
      onChunk(chunk)
      left -= chunk.length
      if (left > 0) return
      left = READ_BYTES
      stream.pause()
      setTimeout(() => stream.resume(), READ_PAUSE_MS).unref()
    })
}

/**
 * Niceness of a child above that of the service, and the most that is added for further children. Three halve the share:
 * more would starve a child beside its siblings until it counts as unresponsive.
 */
const NICER = 5
const MOST_NICER_FOR_SIBLINGS = 3
const NICEST = 19

/**
 * On a busy processor, the service comes before its children, and an only child before one of many. Linux may schedule
 * by session: then the niceness of the session counts.
 */
const lowerSession = ({ pid }: ChildProcess, nicer: number): void => {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(Math.min(NICEST, getPriority() + nicer)))
  } catch {} // it has ended, or the system has no such scheduling
}

/** The signal or exit code that ended a process. bubblewrap exits with 128 and the signal of its child. */
const deathOf = ({ exitCode, signalCode }: ChildProcess, stderr: string): string => {
  if (/heap out of memory|Allocation failed/.test(stderr))
    return 'The process of the function ran out of memory'
  const ended = signalCode ?? signalOf((exitCode ?? 0) - 128)
  if (ended) return `The process of the function was ended by ${ended}`
  return `The process of the function exited with code ${exitCode ?? 'unknown'}`
}

const signalOf = (number: number): string | undefined =>
  Object.entries(constants.signals).find(([, each]) => each === number)?.[0]

/** Signals the whole process group, which may have ended. A namespace does not stop signals from outside. */
const signal = ({ pid }: ChildProcess, name: NodeJS.Signals): void => {
  if (pid === undefined) return
  try {
    process.kill(-pid, name)
  } catch {}
}
