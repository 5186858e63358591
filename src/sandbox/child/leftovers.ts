import { createHook } from 'node:async_hooks'
import { runOfContext } from './endedRun.ts'

/** Captured before user code can replace them. */
// oxlint-disable-next-line no-restricted-properties -- the child has no clock of the service, and measures only itself
const now = performance.now.bind(performance)
const { setTimeout } = globalThis

/** The length of a sample, milliseconds: hooks make each promise five times slower meanwhile. */
const SAMPLE_MS = 20

/** Callbacks inside of each other that are followed. Deeper ones count as the outermost. */
const MAX_DEPTH = 64

/**
 * Measures how much of the time code of ended runs is executed, in short samples. Timers of an ended run never fire, but
 * promises, message ports and callbacks of Node cannot be taken back. Their async context says whose they are.
 */
export class Leftovers {
  #isSampling = false
  #perMille = 0

  /** Takes the result of the last sample, in thousandths of its time. */
  take(): number {
    const perMille = this.#perMille
    this.#perMille = 0
    return perMille
  }

  /** Begins a sample; `take` returns its result after it. */
  sample(): void {
    if (this.#isSampling) return
    this.#isSampling = true
    const began = now()
    const owners = new Uint8Array(MAX_DEPTH)
    let depth = 0
    let last = began
    let usedMs = 0
    const account = () => {
      const at = now()
      if (owners[Math.min(depth, MAX_DEPTH - 1)] === 1) usedMs += at - last
      last = at
    }
    const hook = createHook({
      before: () => {
        account()
        depth++
        if (depth < MAX_DEPTH) owners[depth] = runOfContext()?.isLeftover ? 1 : 0
      },
      after: () => {
        account()
        if (depth > 0) depth-- // the sample may have begun inside of a callback
      },
    }).enable()
    setTimeout(() => {
      hook.disable()
      this.#isSampling = false
      this.#perMille = Math.min(1000, Math.round((usedMs / (now() - began)) * 1000))
    }, SAMPLE_MS)
  }
}
