import { AppError } from '../../errors.ts'
import { CALL, CANCEL, REPLAY } from '../../events/eventType.ts'
import { RawJson } from '../../events/rawJson.ts'
import { isId } from '../../ids.ts'
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
  const { views } = deps
  const data = event_data instanceof RawJson ? event_data.loose : event_data
  const fields = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
  switch (event_type) {
    case CALL:
      await checkCall(views, fields, env_id)
      return event_data
    case CANCEL:
      return { run_id: await cancelledId(deps, fields, env_id) }
    case REPLAY:
      await checkReplay(views, fields, env_id)
      return event_data
    default:
      throw new AppError(
        'bad_request',
        `event_type: names that begin with "svc:" are reserved; expected ${CALL}, ${CANCEL}, ${REPLAY} or a name of your own`,
      )
  }
}

const checkCall = async (
  views: CommandDeps['views'],
  { fn, args, project }: Record<string, unknown>,
  env_id: string,
): Promise<void> => {
  if (typeof fn !== 'string')
    throw new AppError('bad_request', 'event_data.fn: expected a function reference "ns/var"')
  if (args !== undefined && !(args instanceof RawJson ? args.isList : Array.isArray(args)))
    throw new AppError('bad_request', 'event_data.args: expected an array')
  await views.settled('builds', 'projects')
  const found = typeof project === 'string' ? views.directory.project(env_id, project) : undefined
  if (project !== undefined && !found)
    throw new AppError('bad_request', 'event_data.project: expected the id or name of a project')
  if (!views.directory.functionAt(env_id, fn, found?.project_id)) {
    if (found) demandReadable(found, found.deployed)
    else demandAllReadable(views.directory, env_id)
    throw new AppError(
      'bad_request',
      `event_data.fn: no function "${fn.slice(0, 200)}" in the deployed builds`,
    )
  }
}

const checkReplay = async (
  views: CommandDeps['views'],
  fields: Record<string, unknown>,
  env_id: string,
): Promise<void> => {
  const run_id = idIn(fields)
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

const cancelledId = async (
  deps: Pick<CommandDeps, 'views' | 'payloads'>,
  fields: Record<string, unknown>,
  env_id: string,
): Promise<string> => {
  const run_id = idIn(fields)
  if (!(await locateRun(deps, run_id, env_id))) throw unknownRun(run_id)
  return run_id
}

const idIn = ({ run_id }: Record<string, unknown>): string => {
  if (typeof run_id === 'string' && isId(run_id)) return run_id
  throw new AppError('bad_request', 'event_data.run_id: expected a UUID')
}

const unknownRun = (run_id: string): AppError => new AppError('not_found', `No run ${run_id}`)
