import type { Step } from './operations.ts'
import type { Recording } from './recording.ts'

/**
 * Plants a fault in a recording, as if the service had left out some of its syncs. `isLeftOut` gets the path at which the
 * synced file or folder was opened.
 */
export const withoutSyncs = (recording: Recording, isLeftOut: (path: string) => boolean): Recording => {
  const paths = new Map<number, string>()
  const keeps = (step: Step): boolean => {
    if (step.type !== 'begin') return true
    const { operation } = step
    if (operation.kind === 'open') paths.set(operation.handle, operation.path)
    return operation.kind !== 'sync' || !isLeftOut(paths.get(operation.handle) ?? '')
  }
  return {
    ...recording,
    lives: recording.lives.map((life) => ({ ...life, steps: life.steps.filter(keeps) })),
  }
}

/** Plants a fault in a recording, as if the service had replied before its facts were durable. */
export const withEarlyReplies = (recording: Recording, stepsEarlier: number): Recording => ({
  ...recording,
  lives: recording.lives.map((life) => {
    const steps = [...life.steps]
    for (const [at, step] of life.steps.entries()) {
      if (step.type !== 'begin' || step.operation.kind !== 'reply') continue
      steps.splice(at, 1)
      steps.splice(Math.max(0, at - stepsEarlier), 0, step)
    }
    return { ...life, steps }
  }),
})
