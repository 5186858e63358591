import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
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
 * O1: the system has a line when `write` returns, so a crash of the process loses none.
 * O2: `write` never waits. While nobody reads a pipe, its lines wait in memory, up to `MAX_WAITING_BYTES`; later ones are
 *     dropped, and `onDropped` gets their number when the output accepts lines again.
 * O3: no failure of the output ends the service: a closed pipe, or a file on a full disk.
 */
export const openOutput = (fd: number, onDropped: (lines: number) => void): Output => {
  const target = withoutWaiting(fd)
  let waiting: Buffer[] = []
  let bytes = 0
  let dropped = 0
  let timer: NodeJS.Timeout | undefined

  /** Writes what waits; returns false if something is left. */
  const drain = (): boolean => {
    for (let first = waiting[0]; first; first = waiting[0]) {
      const written = accepted(target, first)
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
    if (target !== fd) closeSync(target)
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

/** Opens a pipe a second time, so that only the writes of this process never wait for its reader. */
const withoutWaiting = (fd: number): number => {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return fd // not on Linux, or the pipe has no reader
  }
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
