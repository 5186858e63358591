import { fstatSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { clock } from '../clock.ts'

/** Bytes that wait while nobody reads the output. Later lines are dropped. */
const MAX_WAITING_BYTES = 1 << 20
/** Pauses between attempts to write what waits, milliseconds. */
const RETRY_MS = 100
/** Time for what waits when the process ends, milliseconds. */
const LAST_TRY_MS = 500

export interface Output {
  write(line: string): void
}

/**
 * The standard output of the service:
 * O1: the system has a line when `write` returns, so a crash of the process loses none that the reader had room for.
 * O2: `write` never waits. While nobody reads a pipe, its lines wait in memory, up to `MAX_WAITING_BYTES`; later ones are
 *     dropped, and `onDropped` gets their number when the output accepts lines again.
 * O3: no failure of the output ends the service: a closed pipe, or a file on a full disk.
 */
export const openOutput = (fd: number, onDropped: (lines: number) => void): Output => {
  const handle = withoutWaiting(fd)
  let waiting: Buffer[] = []
  let bytes = 0
  let dropped = 0
  let timer: NodeJS.Timeout | undefined

  /** Writes what waits; returns false if something is left. */
  const drain = (): boolean => {
    for (let first = waiting[0]; first; first = waiting[0]) {
      const written = accepted(fd, first)
      bytes -= written
      if (written === first.length) waiting.shift()
      else {
        waiting[0] = first.subarray(written)
        return false
      }
    }
    return true
  }
  const retry = (): void => {
    timer = undefined
    if (!drain()) return later()
    const lost = dropped
    dropped = 0
    if (lost > 0) onDropped(lost)
  }
  const later = (): void => {
    timer ??= setTimeout(retry, RETRY_MS).unref()
  }

  process.once('exit', () => {
    const until = clock.monotonic() + LAST_TRY_MS
    while (!drain() && clock.monotonic() < until) pause(10)
    waiting = []
    handle?.unref() // it exists until now, because its end would close the output
  })
  return {
    write(line) {
      const text = Buffer.from(line)
      if (bytes + text.length > MAX_WAITING_BYTES) {
        dropped++
        return
      }
      waiting.push(text)
      bytes += text.length
      if (timer === undefined && !drain()) later()
    },
  }
}

/** A pipe or socket that has a handle of libuv has O_NONBLOCK: a write then fails if it would have to wait. */
const withoutWaiting = (fd: number): Socket | undefined => {
  const stat = fstatSync(fd)
  if (!stat.isFIFO() && !stat.isSocket()) return undefined
  return new Socket({ fd, readable: false, writable: true })
}

/** The bytes that the system accepts now. */
const accepted = (fd: number, bytes: Buffer): number => {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'EPIPE' ? bytes.length : 0 // nobody will ever read the pipe
  }
}

const pause = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
