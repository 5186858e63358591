import { AppError } from '../../errors.ts'
import type { Directory } from '../../projections/directory.ts'
import type { Deployed } from '../../projections/wiring.ts'

/**
 * Returns the deployed function of a reference `ns/var` (DESIGN.md, A build). The caller's project takes precedence.
 * Throws `not_found`.
 */
export const functionFor = (
  directory: Directory,
  env_id: string,
  ref: string,
  project_id: string,
): Deployed => {
  const found = directory.functionAt(env_id, ref, project_id) ?? directory.functionAt(env_id, ref)
  if (!found)
    throw new AppError(
      'not_found',
      `No function ${JSON.stringify(ref.slice(0, 200))} in the deployed builds (expected "ns/var")`,
    )
  return found
}
