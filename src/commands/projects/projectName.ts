import { clock } from '../../clock.ts'
import { fenceOf, type NameHolder } from '../../domain/name.ts'
import { AppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { isStale, reserveName, type ReservationState } from './reserveName.ts'

/** Pattern of project names (SPEC.md, Project). */
export const PROJECT_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'
const VALID = new RegExp(PROJECT_NAME)

/** The rule in words, for error messages. */
export const PROJECT_NAME_RULE = '1 to 63 letters, digits, ".", "_" and "-", beginning with a letter or digit'

type Deps = Pick<CommandDeps, 'aggregates' | 'views'>

/**
 * Reserves a project's name in its environment, for its creation or for the rename that begins after `fence`. Names are
 * not released: a reservation becomes void when the project has another name. Rejects with `bad_request` or
 * `project_exists`.
 */
export const reserveProjectName = async (
  deps: Deps,
  { name, project_id, fence }: { name: string; project_id: string; fence: number },
  cause: EnvCause,
): Promise<void> => {
  if (!VALID.test(name))
    throw new AppError(
      'bad_request',
      `name: expected ${PROJECT_NAME_RULE}, got ${JSON.stringify(name.slice(0, 80))}`,
    )
  await reserveName(
    deps,
    {
      stream: streamOf.projectName(cause.env_id, name),
      name,
      by: { holder: project_id, fence, reserved_at: clock.iso() },
      taken: 'project_exists',
      stateOf: (held) => stateOf(deps, name, held, cause),
    },
    cause,
  )
}

const stateOf = async (
  { aggregates, views }: Deps,
  name: string,
  held: NameHolder,
  cause: EnvCause,
): Promise<ReservationState> => {
  const { holder: project_id } = held
  const fence = fenceOf(held)
  const stream = streamOf.project(project_id)
  for (;;) {
    const project = await aggregates.projects.read(stream, (state) => {
      if (state.status === 'deleted') return null
      const { status, nameFence } = state
      return { status, nameFence, name: state.status === 'active' ? state.name : null }
    })
    if (project?.name === name) return 'in use'
    if (!project || fence < project.nameFence) return 'void'
    if (project.status === 'absent' && views.directory.project(cause.env_id, name)) return 'in use'
    if (!isStale(held)) return 'in use'
    // Its node died, or its creation or rename will now fail as too slow.
    const type = project.status === 'absent' ? 'AbandonCreation' : 'AbandonRename'
    await aggregates.projects.handle(stream, { type, project_id, fence }, cause)
  }
}
