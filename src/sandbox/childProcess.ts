import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { messageOf } from '../errors.ts'
import { frameReader, frameWriter, ProtocolViolation } from './frames.ts'
import type { SandboxOptions } from './limits.ts'
import type { ChildCode } from './childCode.ts'
import { type ChildFrame, type ParentFrame, parseChildFrame, parseLargeChildFrame } from './protocol.ts'
import { nodeArgs } from './processSandbox.ts'

/** The reason for the end of a child that the parent did not kill. */
export interface Ending {
  readonly code: 'worker_lost' | 'protocol_violation'
  readonly message: string
}

interface Listener {
  /** `size`: characters of JSON. If it throws `ProtocolViolation`, the child is killed. */
  onFrame(frame: ChildFrame, size: number): void
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
  /** True after `kill` and after a protocol violation. */
  readonly killed: boolean
}

const STDERR_TAIL = 4 << 10

export interface Start {
  /** The unpacked build. */
  readonly dir: string
  readonly code: ChildCode
  readonly options: SandboxOptions
  /** Receives the service's end of fd 4, over which all connections of user code are made. */
  readonly openEgress?: ((pipe: Socket) => void) | undefined
}

/** Frames that a child sent before its end must arrive within this time after it. */
const DRAIN_MS = 1000

/**
 * Owns the operating system process of one child and its pipe. Every frame is checked before the listener
 * gets it. A failure of any kind, even a failed start, is reported by `onEnd` and never thrown.
 */
export const startProcess = (
  { dir, code, options, openEgress }: Start,
  listener: Listener,
): SandboxedProcess => {
  const [command, ...args] = options.sandbox({
    node: options.node,
    nodeArgs: nodeArgs(options.heapMb),
    entry: code.entry,
    dirs: [dir, code.dir],
    dataMb: options.dataMb,
  })
  const child = spawn(command, args, {
    cwd: dir,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', TZ: 'UTC' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  const [, , , pipe, egress] = child.stdio as unknown as readonly Socket[] // what spawn makes of a 'pipe' after the third
  if (!pipe || !egress) throw new Error('Expected spawn to open the pipes of the child')
  const writer = frameWriter((bytes) => pipe.write(bytes))
  let violation: Ending | undefined
  let stderr = ''
  let exited = false
  let piped = false
  let ended = false
  let killed = false
  let drain: NodeJS.Timeout | undefined

  const violate = (error: unknown) => {
    violation ??= { code: 'protocol_violation', message: messageOf(error) }
    pipe.removeAllListeners('data').resume()
    stop()
  }

  const stop = () => {
    killed = true
    pipe.resume() // a paused pipe does not report its end
    kill(child)
  }

  const read = frameReader(
    (json) => {
      if (!violation) listener.onFrame(parseChildFrame(json), json.length)
    },
    (bytes) => {
      if (!violation) listener.onFrame(parseLargeChildFrame(bytes), bytes.length)
    },
  )
  pipe.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error
      violate(error)
    }
  })

  const end = () => {
    if (ended || !exited || !piped) return
    ended = true
    clearTimeout(drain)
    listener.onEnd(violation ?? { code: 'worker_lost', message: deathOf(child, stderr) })
  }
  const onPiped = () => {
    piped = true
    stop() // without the pipe a living child cannot be used
    end()
  }
  const onExited = () => {
    exited = true
    egress.destroy()
    drain = setTimeout(() => pipe.destroy(), DRAIN_MS)
    end()
  }
  pipe.on('error', () => {}) // the child closed its end; 'close' follows
  egress.on('error', () => {})
  openEgress?.(egress)
  pipe.on('close', onPiped)
  child.on('exit', onExited)
  child.on('error', (error) => {
    if (child.pid !== undefined) return
    stderr = error.message
    onExited()
  })

  discard(child.stdout)
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('latin1')).slice(-STDERR_TAIL)
  })
  child.stderr?.on('error', () => {})

  return {
    sendJson: writer.send,
    send: (frame) => writer.send(JSON.stringify(frame)),
    listen: (yes) => void (yes ? pipe.resume() : pipe.pause()),
    kill: stop,
    get killed() {
      return killed
    },
  }
}

/** Output outside any run has no reader, but a full pipe would block the child. */
const discard = (stream: Readable | null): void => {
  stream?.on('error', () => {}).resume()
}

const deathOf = ({ exitCode, signalCode }: ChildProcess, stderr: string): string => {
  if (/heap out of memory|Allocation failed/.test(stderr))
    return 'The process of the function ran out of memory'
  if (signalCode) return `The process of the function was ended by ${signalCode}`
  return `The process of the function exited with code ${exitCode ?? 'unknown'}`
}

/** Kills the whole process group, which may have ended. */
const kill = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}
