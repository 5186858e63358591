import { clock } from '../clock.ts'
import { onOneLine } from '../logger.ts'
import { count, duration } from './figures.ts'
import type { Terminal } from './terminal.ts'

/** The progress of long work. No package that is still maintained shows a rate and the time left. */
export interface Progress {
  /** `total`: null while it is unknown. `label`: the part of the work that is in progress. */
  report(done: number, total: number | null, label?: string): void
  /** Removes the bar. */
  end(): void
}

interface Sample {
  readonly at: number
  readonly done: number
}

/** The rate is that of the last seconds, because work may be resumed and its speed changes; milliseconds. */
const RATE_WINDOW_MS = 10_000
/** Least time between two repaints, milliseconds. */
const REPAINT_MS = 100
const BAR = 20
const CLEAR = '\r\x1b[K'

const none: Progress = { report() {}, end() {} }

/** Shows for how long something is awaited, until it is ended. */
export const openWaiting = (
  { err, progressColumns }: Pick<Terminal, 'err' | 'progressColumns'>,
  label: string,
): Pick<Progress, 'end'> => {
  if (progressColumns === null) return none
  const began = clock.monotonic()
  const paint = (): void => {
    const line = `${onOneLine(label)}  ${duration(clock.monotonic() - began)}`
    err(CLEAR + line.slice(0, progressColumns - 1))
  }
  const timer = setInterval(paint, 1000)
  return {
    end() {
      clearInterval(timer)
      err(CLEAR)
    },
  }
}

export const openProgress = (
  { err, progressColumns }: Pick<Terminal, 'err' | 'progressColumns'>,
  unit: string,
  now: () => number = () => clock.monotonic(),
): Progress => {
  if (progressColumns === null) return none
  const samples: Sample[] = []
  let paintedAt = -Infinity
  return {
    report(done, total, label) {
      const at = now()
      if (at < paintedAt + REPAINT_MS) return
      paintedAt = at
      if (done < (samples.at(-1)?.done ?? 0)) samples.length = 0 // the next part of the work has begun
      samples.push({ at, done })
      while ((samples[1]?.at ?? Infinity) <= at - RATE_WINDOW_MS) samples.shift()
      const line = lineOf({ done, total, label, unit, perSecond: rateOf(samples) })
      err(CLEAR + line.slice(0, progressColumns - 1))
    },
    end: () => err(CLEAR),
  }
}

const rateOf = (samples: readonly Sample[]): number | null => {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || last.at === first.at) return null
  return ((last.done - first.done) / (last.at - first.at)) * 1000
}

/** One line: label, bar, share, count, rate and the time left, as far as they are known. */
export const lineOf = ({
  done,
  total,
  label,
  unit,
  perSecond,
}: {
  readonly done: number
  readonly total: number | null
  readonly label?: string | undefined
  readonly unit: string
  readonly perSecond: number | null
}): string => {
  const share = total === null ? null : total === 0 ? 1 : Math.min(1, done / total)
  const filled = Math.floor((share ?? 0) * BAR)
  const left = total !== null && perSecond ? ((total - done) / perSecond) * 1000 : null
  return [
    ...(label === undefined ? [] : [label]),
    ...(share === null
      ? []
      : [`[${'#'.repeat(filled)}${'.'.repeat(BAR - filled)}]`, `${Math.floor(share * 100)} %`]),
    `${count(done)}${total === null ? '' : ` of ${count(total)}`} ${unit}`,
    ...(perSecond === null ? [] : [`${count(perSecond)}/s`]),
    ...(left === null || left < 0 ? [] : [`${duration(left)} left`]),
  ].join('  ')
}
