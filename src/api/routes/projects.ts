import Type from 'typebox'
import { clock } from '../../clock.ts'
import { AppError, isAppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { timeOf } from '../../ids.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { ApiDeps } from '../deps.ts'
import { listOf } from '../listOf.ts'
import { type Ask, item, none, route } from '../route.ts'
import { PageQuery, Project } from '../schemas.ts'

const tag = 'Projects'
const Body = Type.Object({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
    description: 'Unique in the environment; usable in paths instead of the id',
  }),
})

const present = ({ order: _, ...project }: ProjectDoc) => project

/** A project of the caller's environment by id or name; what lies elsewhere does not exist (I7). */
export const projectOf = ({
  params,
  credential,
  deps,
}: Pick<Ask<{ project: string }>, 'params' | 'credential' | 'deps'>) => {
  const found = deps.views.directory.project(credential.env_id, params.project)
  if (!found) throw new AppError('not_found', `No project "${params.project}"`)
  return found
}

/** The path parts of a project in permissions: its id and its name. */
export const projectPaths = (
  params: { project: string },
  { credential, deps }: Pick<Ask, 'credential' | 'deps'>,
): string[] => {
  const found = deps.views.directory.project(credential.env_id, params.project)
  return found ? [found.project_id, found.name] : [params.project]
}

/** Takes the name for the project; a holder that never came to be, because a node died in between, gives way. */
const reserve = async (
  { aggregates, views }: ApiDeps,
  env_id: string,
  name: string,
  holder: string,
  request_id: string,
): Promise<void> => {
  const stream = streamOf.projectName(env_id, name)
  const cause = { env_id, correlation_id: request_id }
  const command = { type: 'ReserveName', name, holder, taken: 'project_exists' } as const
  try {
    await aggregates.names.handle(stream, command, cause)
  } catch (error) {
    const other = isAppError(error, 'project_exists') ? error.data['holder'] : undefined
    if (typeof other !== 'string') throw error
    const status = await aggregates.projects.read(streamOf.project(other), (project) => project.status)
    if (status === 'active' || (status === 'absent' && views.directory.project(env_id, name))) throw error
    if (status === 'absent' && !isStale(other)) throw error
    await aggregates.names.handle(stream, { ...command, gone: other }, cause)
  }
}

/** Whether a project that was to be made with this id should be there by now. */
const isStale = (id: string): boolean => timeOf(id) < clock.now() - 10_000

export const projectRoutes = [
  route({
    method: 'GET',
    path: '/v1/projects',
    summary: 'List projects',
    tag,
    needs: { type: 'project', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Project },
    handle: ({ query, credential: { env_id }, deps: { views } }) =>
      listOf(views, 'projects', { equal: { env_id }, ...query }, present),
  }),

  route({
    method: 'POST',
    path: '/v1/projects',
    summary: 'Create a project',
    tag,
    needs: { type: 'project', action: 'create' },
    body: Body,
    example: { name: 'hello' },
    errors: ['project_exists'],
    reply: { kind: 'item', status: 201, schema: Project },
    handle: async ({ body: { name }, credential, deps, request_id, caller: { newId } }) => {
      const { env_id } = credential
      const project_id = newId('project')
      await reserve(deps, env_id, name, project_id, request_id)
      await deps.aggregates.projects.handle(
        streamOf.project(project_id),
        { type: 'CreateProject', project_id, name },
        { env_id, correlation_id: request_id, actor: credential.id },
        { fresh: true },
      )
      return item(await stored(deps, project_id), 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project',
    summary: 'Get a project',
    tag,
    needs: { type: 'project', action: 'read', path: projectPaths },
    reply: { kind: 'item', schema: Project },
    handle: async (ask) => {
      await ask.deps.views.settled('projects')
      return item(await stored(ask.deps, projectOf(ask).project_id))
    },
  }),

  route({
    method: 'PATCH',
    path: '/v1/projects/:project',
    summary: 'Rename a project',
    tag,
    needs: { type: 'project', action: 'update', path: projectPaths },
    body: Body,
    example: { name: 'hello' },
    errors: ['project_exists'],
    reply: { kind: 'item', schema: Project },
    handle: async (ask) => {
      const { deps, body, credential, request_id } = ask
      await deps.views.settled('projects')
      const { project_id, env_id, name } = projectOf(ask)
      const cause = { env_id, correlation_id: request_id, actor: credential.id }
      if (body.name !== name) {
        await reserve(deps, env_id, body.name, project_id, request_id)
        await deps.aggregates.projects.handle(
          streamOf.project(project_id),
          { type: 'RenameProject', project_id, name: body.name },
          cause,
        )
        await deps.aggregates.names.handle(
          streamOf.projectName(env_id, name),
          { type: 'ReleaseName', name, holder: project_id },
          cause,
        )
      }
      return item(await stored(deps, project_id))
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/projects/:project',
    summary: 'Delete a project and its builds',
    tag,
    needs: { type: 'project', action: 'delete', path: projectPaths },
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { deps, credential, request_id } = ask
      await deps.views.settled('projects')
      const { project_id, env_id, name } = projectOf(ask)
      const cause = { env_id, correlation_id: request_id, actor: credential.id }
      // First: if this node dies in between, the project is still there to be deleted again.
      await deps.aggregates.contexts.handle(
        streamOf.context(project_id),
        { type: 'CloseContext', project_id },
        cause,
      )
      await deps.dataKeys.destroy({ env_id, project_id }, { final: true }, cause)
      await deps.aggregates.projects.handle(
        streamOf.project(project_id),
        { type: 'DeleteProject', project_id },
        cause,
      )
      await deps.aggregates.names.handle(
        streamOf.projectName(env_id, name),
        { type: 'ReleaseName', name, holder: project_id },
        cause,
      )
      return none
    },
  }),
]

const stored = async ({ views }: ApiDeps, project_id: string) => {
  await views.settled('projects')
  const doc = await views.projects.get(project_id)
  if (!doc) throw new AppError('not_found', 'No such project')
  return present(doc)
}
