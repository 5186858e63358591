import type { SagaCore } from './saga.ts'

/** The first sweeps begin within this time. */
const FIRST_MS = 60_000

export type SweepInput<Sweep extends string> =
  /** `spread`, from 0 to 1, differs between nodes, so that they do not sweep at the same time. */
  { readonly type: 'started'; readonly spread: number } | { readonly type: 'due'; readonly sweep: Sweep }

export interface SweepCommand<Sweep extends string> {
  readonly sweep: Sweep
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Repeats each sweep at its interval. If a sweep takes longer than its interval, the next one is skipped. */
export const sweepingCore = <Sweep extends string>(
  everyMs: Readonly<Record<Sweep, number>>,
): SagaCore<null, SweepInput<Sweep>, SweepCommand<Sweep>> => {
  const alarm = (sweep: Sweep, at: number) =>
    ({ do: 'setAlarm', key: sweep, at, input: { type: 'due', sweep } }) as const
  return {
    initial: null,
    react(state, input, now) {
      if (input.type === 'started') {
        const at = now + input.spread * FIRST_MS
        return { state, steps: (Object.keys(everyMs) as Sweep[]).map((sweep) => alarm(sweep, at)) }
      }
      const { sweep } = input
      const carryOut = { do: 'carryOut', key: sweep, command: { sweep, now } } as const
      return { state, steps: [carryOut, alarm(sweep, now + everyMs[sweep])] }
    },
  }
}

/** The inputs of a saga that only sweeps. */
export async function* sweepInputs(signal: AbortSignal): AsyncGenerator<{ type: 'started'; spread: number }> {
  yield { type: 'started', spread: Math.random() }
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
