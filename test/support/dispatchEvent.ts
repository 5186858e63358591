import { Dispatch } from '../../src/commands/events/dispatch.ts'
import type { RunPlan } from '../../src/events/run.ts'

/** Claims all parts of an event for one worker. Resolves with the runs; null if the event was dispatched before. */
export const dispatchEvent = async (
  deps: ConstructorParameters<typeof Dispatch>[0],
  { worker_id, ...event }: ConstructorParameters<typeof Dispatch>[1] & { readonly worker_id: string },
): Promise<readonly RunPlan[] | null> => {
  const dispatch = new Dispatch(deps, event)
  const plans = new Map<string, RunPlan>()
  for (;;) {
    const claimed = await dispatch.claim(worker_id)
    if (!claimed) return null
    for (const plan of claimed.plans) plans.set(plan.run_id, plan)
    if (claimed.isLast) return [...plans.values()]
  }
}
