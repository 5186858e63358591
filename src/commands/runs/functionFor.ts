import { AppError } from '../../errors.ts'
import type { Directory } from '../../projections/directory.ts'
import type { Deployed } from '../../projections/wiring.ts'
import { demandAllReadable, demandReadable } from '../projects/demandReadable.ts'
import { nearest } from '../../sandbox/nearestName.ts'

/** Throws `forbidden` for a function that the caller may not start. */
export type Admit = (found: Deployed) => void

/**
 * Returns the deployed function of a reference `ns/var` (DESIGN.md, A build). The caller's project takes precedence.
 * Throws `not_found`, or `unavailable` if it may be in a build that cannot be read, or as `admit` does.
 */
export const functionFor = (
  directory: Directory,
  env_id: string,
  ref: string,
  project_id: string,
  admit?: Admit,
): Deployed => {
  const own = directory.functionAt(env_id, ref, project_id)
  const project = directory.projectById(project_id)
  if (!own && project) demandReadable(project, project.deployed)
  const found = own ?? directory.functionAt(env_id, ref)
  if (!found) demandAllReadable(directory, env_id)
  if (!found) throw noFunction(directory, { ref, project_id, place: 'the deployed builds' })
  admit?.(found)
  return found
}

/** The error of an unknown reference, with the function of the project that was probably meant. */
export const noFunction = (
  directory: Directory,
  { ref, project_id, place }: { readonly ref: string; readonly project_id: string; readonly place: string },
): AppError => {
  const functions = directory.projectById(project_id)?.deployed?.functions ?? []
  const likely = nearest(
    ref,
    functions.values().map(({ ns, var: name }) => `${ns}/${name}`),
  )
  const advice = likely === undefined ? '' : `; did you mean ${likely}?`
  return new AppError('not_found', `No function ${JSON.stringify(ref.slice(0, 200))} in ${place}${advice}`)
}
