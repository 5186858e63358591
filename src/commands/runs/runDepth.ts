import { AppError } from '../../errors.ts'
import type { RunPlan } from '../../events/run.ts'

/**
 * Returns the depth of what a run starts: one more than its own. Rejects beyond the limit, so that functions cannot start
 * each other forever.
 */
export const depthBelow = ({ depth = 0 }: Pick<RunPlan, 'depth'>, maxRunDepth: number): number => {
  if (depth < maxRunDepth) return depth + 1
  throw new AppError(
    'depth_exceeded',
    `This run is at depth ${depth} in its chain of runs, and the limit is ${maxRunDepth}. ` +
      'Functions that start each other must end the chain earlier, or continue it from a schedule or a client.',
  )
}
