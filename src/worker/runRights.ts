import type { Credential } from '../access/credential.ts'
import { bothAllow, compilePermissions, demand, type PermissionSet } from '../access/permissions.ts'
import { AppError } from '../errors.ts'
import type { Evaluator, RunPlan } from '../events/run.ts'
import type { DirectoryProject } from '../projections/directoryProject.ts'

/** Resolves with the credential as it is now; undefined if it is no longer valid. */
export type CredentialNow = (credential: Pick<Evaluator, 'kind' | 'id'>) => Promise<Credential | undefined>

/**
 * The permissions of a run, read again for each host call. Null: a deployed function, which may use everything of its
 * environment, because the credential that deployed it was allowed to.
 */
export type RunRights = (() => Promise<PermissionSet>) | null

/** Evaluated code may do what its credential could do at the request and still can do. */
export const rightsOf = ({ target, evaluator }: RunPlan, credentialNow: CredentialNow): RunRights => {
  if (!('code' in target)) return null
  return async () => {
    const now = evaluator && (await credentialNow(evaluator))
    if (!evaluator || !now)
      throw new AppError(
        'forbidden',
        'The credential that evaluates this code is no longer valid: expected one that is not revoked, disabled or expired',
      )
    return evaluator.permissions.map(compilePermissions).reduce(bothAllow, now.permissions)
  }
}

/** Rejects with `forbidden` unless the run may do it. The rule is that of the HTTP endpoint with the same effect. */
export const demandOf = async (
  rights: NonNullable<RunRights>,
  type: string,
  actions: readonly [string, ...string[]],
  paths: readonly string[] = [],
): Promise<void> => {
  demand(await rights(), { type, actions, paths })
}

/** Returns a check whether the run may start a function, which then runs with its own rights. */
export const admitOf = async (
  rights: NonNullable<RunRights>,
): Promise<(started: { readonly project: DirectoryProject }) => void> => {
  const permissions = await rights()
  return ({ project }) =>
    demand(permissions, { type: 'build', actions: ['execute'], paths: pathsOf(project) })
}

/** The names by which permissions refer to a project. */
export const pathsOf = ({ project_id, name }: Pick<DirectoryProject, 'project_id' | 'name'>): string[] => [
  project_id,
  name,
]
