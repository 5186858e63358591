import { AppError } from '../../errors.ts'
import { controlOf, noProject } from '../../domain/controlData.ts'
import { CALL, CANCEL, REPLAY } from '../../events/eventType.ts'
import { locateRun } from '../runs/locateRun.ts'
import { demandAllReadable, demandReadable } from '../projects/demandReadable.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Checks a control event and resolves with the data to store. Otherwise a call or a replay of an unknown function would be accepted
 * without effect. Of a cancellation only the id is stored, because no quota refuses it. Rejects with `bad_request` that names the field, or with `not_found` for a run that the environment does not have
 * (I7).
 */
export const checkedControl = async (
  deps: Pick<CommandDeps, 'views' | 'payloads'>,
  { event_type, event_data, env_id }: { event_type: string; event_data: unknown; env_id: string },
): Promise<unknown> => {
  const control = controlOf(event_type, event_data)
  switch (control.type) {
    case CALL:
      await checkCall(deps.views, control, env_id)
      return event_data
    case CANCEL:
      if (!(await locateRun(deps, control.run_id, env_id))) throw unknownRun(control.run_id)
      return { run_id: control.run_id }
    case REPLAY:
      await checkReplay(deps.views, control.run_id, env_id)
      return event_data
    default:
      return control satisfies never
  }
}

const checkCall = async (
  views: CommandDeps['views'],
  { fn, project }: { readonly fn: string; readonly project: string | undefined },
  env_id: string,
): Promise<void> => {
  await views.settled('builds', 'projects')
  const found = project === undefined ? undefined : views.directory.project(env_id, project)
  if (project !== undefined && !found) throw noProject()
  if (!views.directory.functionAt(env_id, fn, found?.project_id)) {
    if (found) demandReadable(found, found.deployed)
    else demandAllReadable(views.directory, env_id)
    throw new AppError(
      'bad_request',
      `event_data.fn: no function "${fn.slice(0, 200)}" in the deployed builds`,
    )
  }
}

const checkReplay = async (views: CommandDeps['views'], run_id: string, env_id: string): Promise<void> => {
  await views.settled('runs', 'builds', 'projects')
  const run = await views.runs.get(run_id)
  if (run?.env_id !== env_id) throw unknownRun(run_id)
  const { fn, input_at, project_id, project_name } = run
  if (!fn || !input_at)
    throw new AppError('bad_request', 'event_data.run_id: evaluated code cannot be replayed')
  if (views.directory.functionAt(env_id, fn, project_id)) return
  const project = views.directory.project(env_id, project_id)
  if (!project)
    throw new AppError('bad_request', `event_data.run_id: the project ${project_name} of the run was deleted`)
  demandReadable(project, project.deployed)
  throw new AppError(
    'bad_request',
    `event_data.run_id: the function ${fn} of the run is not in the deployed build of ${project.name}`,
  )
}

const unknownRun = (run_id: string): AppError => new AppError('not_found', `No run ${run_id}`)
