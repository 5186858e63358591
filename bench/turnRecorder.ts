import { renameSync, writeFileSync } from 'node:fs'
import { PerformanceObserver, performance } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'
import { threadClock } from '../test/support/threadClock.ts'

/** What the recorder has seen of one process. Times in milliseconds. */
export interface RecordedTurns {
  readonly wall: number
  /** Each turn: its time, and the processor time of the thread in it. Turns of less than a millisecond are added up. */
  readonly turns: readonly (readonly [active: number, cpu: number])[]
  /** The pauses of the garbage collector. */
  readonly pauses: readonly number[]
}

const LOOK_MS = 1

/**
 * Imported by a service whose turns of the event loop are measured: it records from one SIGUSR2 to the next, and then writes
 * to `BENCH_TURNS`. A timer that is due at once follows each turn, so it sees each turn of more than a millisecond.
 */
const record = (file: string): void => {
  const turns: [number, number][] = []
  const pauses: number[] = []
  const cpuMs = threadClock()
  let stop: (() => void) | undefined
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) pauses.push(duration)
  })
  const begin = (): void => {
    const began = performance.now()
    let [active, cpu] = [performance.eventLoopUtilization().active, cpuMs()]
    observer.observe({ entryTypes: ['gc'] })
    const timer = setInterval(() => {
      const [activeNow, cpuNow] = [performance.eventLoopUtilization().active, cpuMs()]
      turns.push([activeNow - active, cpuNow - cpu])
      active = activeNow
      cpu = cpuNow
    }, LOOK_MS)
    stop = () => {
      clearInterval(timer)
      observer.disconnect()
      const recorded: RecordedTurns = { wall: performance.now() - began, turns, pauses }
      // The reader waits for the name, so it is given to the whole file.
      writeFileSync(`${file}.part`, JSON.stringify(recorded))
      renameSync(`${file}.part`, file)
    }
  }
  process.on('SIGUSR2', () => {
    if (stop) stop()
    else begin()
  })
}

const file = process.env['BENCH_TURNS']
if (isMainThread && file !== undefined) record(file)
