import { type FunctionChanges, functionChanges } from '../../domain/functionChanges.ts'
import { activeProject, admitDeployment } from '../../domain/project.ts'
import { payloadFields } from '../../events/payload.ts'
import type { FunctionSpec } from '../../events/project.ts'
import { streamOf } from '../../events/streams.ts'
import type { BuildDoc } from '../../projections/builds.ts'
import { buildFor } from './buildFor.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'
import { webhooksIn } from '../../domain/webhook.ts'
import { changesBetween } from './changesBetween.ts'
import { checkFunctions } from './checkFunctions.ts'
import { functionsOf, reserveWebhooks } from './reserveWebhooks.ts'
import { retryLate } from '../projects/retryLate.ts'

/**
 * Deploys a build of a project (id or name) and replaces the deployed one (SPEC.md, Builds). `changes` compares the
 * functions of the two, and `warnings` names likely mistakes. Rejects with `not_found`,
 * with `quota_exceeded`, or with `conflict` when another project has one of its webhooks.
 */
export const deployBuild = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'payloads' | 'runtime' | 'quotas'>,
  { project, build_id }: { project: string; build_id: string },
  { cause }: Caller,
): Promise<{ build: BuildDoc; changes: FunctionChanges; warnings: readonly string[] }> => {
  const { aggregates, views, runtime, quotas } = deps
  const { env_id } = cause
  await views.settled('builds', 'projects')
  const { project_id } = projectFor(views.directory, env_id, project)
  const { hash, functions, functions_ref } = await buildFor(deps, project_id, build_id)
  const deployment = {
    build_id,
    project_id,
    hash,
    ...payloadFields('functions', { value: [...(functions ?? [])], ref: functions_ref }),
  }
  const stream = streamOf.project(project_id)
  let changes = functionChanges([], [])
  let verified: readonly FunctionSpec[] = []
  let isUnknown = false
  const deploy = async () => {
    await views.settled('projects')
    const list = await functionsOf(deps, { functions, functions_ref }) // a long one takes memory, so one at a time
    const webhooks = webhooksIn(list)
    verified = list.filter(({ webhook }) => webhook?.verify)
    const replaced = views.directory.projectById(project_id)?.deployed
    isUnknown = replaced?.unreadable !== undefined
    changes = await changesBetween(replaced?.functions ?? [], list)
    checkFunctions(deps, env_id, { project_id, place: 'deployed', count: list.length })
    const fence = await aggregates.projects.read(stream, (state) => {
      const project = activeProject(state)
      admitDeployment(project, build_id)
      return project.fence
    })
    await reserveWebhooks(deps, { webhooks, project_id, fence }, cause)
    await aggregates.projects.handle(stream, { type: 'DeployBuild', build: deployment, fence }, cause)
  }
  await quotas.inTurn(env_id, () => retryLate(deploy))
  runtime.prewarm({
    org_id: deps.views.directory.orgIdOf(env_id),
    env_id,
    project_id,
    build_id,
    hash,
    rights: {},
  }) // most functions declare no context
  const warnings = await missingSecrets(deps, project_id, verified)
  if (isUnknown)
    warnings.push('The functions of the replaced build cannot be read, so all functions count as added')
  return { build: await buildFor(deps, project_id, build_id), changes, warnings }
}

/** Warns about webhooks whose requests are refused, because the project lacks the secret of their signatures. */
const missingSecrets = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  project_id: string,
  verified: readonly FunctionSpec[],
): Promise<string[]> => {
  if (verified.length === 0) return []
  const known = await aggregates.contexts.read(
    streamOf.context(project_id),
    ({ variables }) => new Set(variables.keys()),
  )
  return verified.flatMap(({ ns, var: name, webhook }) => {
    const key = webhook?.verify?.context ?? ''
    return known.has(key)
      ? []
      : [`${ns}/${name}: the project has no context variable ${key}, so the webhook refuses every request`]
  })
}
