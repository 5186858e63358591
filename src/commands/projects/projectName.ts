import { AppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { reserveName } from './reserveName.ts'

/** What a project may be called. */
export const PROJECT_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'
const VALID = new RegExp(PROJECT_NAME)

type Deps = Pick<CommandDeps, 'aggregates' | 'views'>

/** Reserves a project's name in its environment. Rejects with `bad_request` or `project_exists`. */
export const reserveProjectName = async (
  deps: Deps,
  { name, project_id }: { name: string; project_id: string },
  cause: EnvCause,
): Promise<void> => {
  if (!VALID.test(name))
    throw new AppError(
      'bad_request',
      `name: expected ${PROJECT_NAME}, got ${JSON.stringify(name.slice(0, 80))}`,
    )
  const { env_id } = cause
  const stateOf = async (holder: string) => {
    const status = await deps.aggregates.projects.read(streamOf.project(holder), (state) => state.status)
    if (status === 'deleted') return status
    return status === 'active' || deps.views.directory.project(env_id, name) ? 'exists' : 'not created'
  }
  const stream = streamOf.projectName(env_id, name)
  await reserveName(deps, { stream, name, holder: project_id, taken: 'project_exists', stateOf }, cause)
}

/** Makes the name available to other projects, if the project has it. */
export const releaseProjectName = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { name, project_id }: { name: string; project_id: string },
  cause: EnvCause,
): Promise<void> => {
  const stream = streamOf.projectName(cause.env_id, name)
  await aggregates.names.handle(stream, { type: 'ReleaseName', name, holder: project_id }, cause)
}
