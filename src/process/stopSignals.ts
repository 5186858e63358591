import { clock } from '../clock.ts'

/** A terminal signals the whole process group, and npm passes the signal on: this process then gets it twice. */
const SAME_MS = 500

interface Given {
  /** Called with the first signal. */
  readonly first: (signal: NodeJS.Signals) => void
  /** Called with a signal that was sent again. */
  readonly again: (signal: NodeJS.Signals) => void
  readonly signals?: readonly NodeJS.Signals[]
  readonly source?: Pick<NodeJS.EventEmitter, 'on'>
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

/** Receives the signals that stop this process. Those within half a second of the first are the first one. */
export const onStopSignals = ({
  first,
  again,
  signals = ['SIGTERM', 'SIGINT', 'SIGHUP'],
  source = process,
  now = clock.monotonic,
}: Given): void => {
  let firstAt: number | undefined
  for (const signal of signals)
    source.on(signal, () => {
      if (firstAt === undefined) {
        firstAt = now()
        first(signal)
      } else if (now() - firstAt >= SAME_MS) again(signal)
    })
}
