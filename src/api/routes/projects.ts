import Type from 'typebox'
import { pastOf } from '../../commands/audit/past.ts'
import { createProject } from '../../commands/projects/createProject.ts'
import { deleteProject } from '../../commands/projects/deleteProject.ts'
import { projectDocFor, projectFor } from '../../commands/projects/projectFor.ts'
import { PROJECT_NAME } from '../../commands/projects/projectName.ts'
import { updateProject } from '../../commands/projects/updateProject.ts'
import type { DirectoryProject } from '../../projections/directoryProject.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import { type Ask, item, none, route } from '../route.ts'
import { AsOfPageQuery, AsOfQuery, listPastPage, pastProjectOf } from '../asOf.ts'
import { listOf } from '../paging.ts'
import { Network, Project } from '../schemas.ts'

const tag = 'Projects'
const name = Type.String({
  pattern: PROJECT_NAME,
  description: 'Unique in the environment; can be used in paths instead of the id',
})
const NewProject = Type.Object({ name, network: Type.Optional(Network) })
const ChangedProject = Type.Object(
  { name: Type.Optional(name), network: Type.Optional(Network) },
  { minProperties: 1 },
)

const present = ({ order: _, pauses: __, ...project }: ProjectDoc) => project

/** The project that the path names, by id or name. */
export const projectOf = ({
  params,
  credential,
  deps,
}: Pick<Ask<{ project: string }>, 'params' | 'credential' | 'deps'>): DirectoryProject =>
  projectFor(deps.views.directory, credential.env_id, params.project)

/** The path parts of a project in permissions: its id and its name, which another node may have given it just now. */
export const byProject = {
  path(params: { project: string }, { credential, deps }: Pick<Ask, 'credential' | 'deps'>): string[] {
    const found = deps.views.directory.project(credential.env_id, params.project)
    return found ? [found.project_id, found.name] : [params.project]
  },
  settled: ({ deps }: Pick<Ask, 'deps'>): Promise<void> => deps.views.settled('projects'),
}

export const projectRoutes = [
  route({
    method: 'GET',
    path: '/v1/projects',
    operationId: 'listProjects',
    summary: 'List projects',
    tag,
    needs: { type: 'project', action: 'read' },
    query: AsOfPageQuery,
    reply: { kind: 'list', schema: Project },
    handle: async ({ query: { as_of, ...page }, credential: { env_id }, deps }) =>
      as_of === undefined
        ? listOf(deps.views, 'projects', { equal: { env_id }, ...page }, present)
        : listPastPage(await (await pastOf(deps, as_of)).projectPage(env_id, page), page, present),
  }),

  route({
    method: 'POST',
    path: '/v1/projects',
    operationId: 'createProject',
    summary: 'Create a project',
    tag,
    needs: { type: 'project', action: 'create' },
    body: NewProject,
    example: { name: 'hello' },
    errors: ['project_exists', 'quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: Project },
    handle: async ({ body, deps, caller }) => item(present(await createProject(deps, body, caller)), 201),
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project',
    operationId: 'getProject',
    summary: 'Get a project',
    tag,
    needs: { type: 'project', action: 'read', ...byProject },
    query: AsOfQuery,
    reply: { kind: 'item', schema: Project },
    handle: async (ask) => {
      const { as_of } = ask.query
      if (as_of !== undefined) return item(present((await pastProjectOf(ask, as_of, 'project')).project))
      await ask.deps.views.settled('projects')
      return item(present(await projectDocFor(ask.deps, projectOf(ask).project_id)))
    },
  }),

  route({
    method: 'PATCH',
    path: '/v1/projects/:project',
    operationId: 'updateProject',
    summary: 'Change the name or the network of a project',
    tag,
    needs: { type: 'project', action: 'update', ...byProject },
    body: ChangedProject,
    example: { name: 'hello', network: ['api.stripe.com'] },
    errors: ['project_exists'],
    reply: { kind: 'item', schema: Project },
    handle: async ({ params, body, deps, caller }) =>
      item(present(await updateProject(deps, { ...body, ...params }, caller))),
  }),

  route({
    method: 'DELETE',
    path: '/v1/projects/:project',
    operationId: 'deleteProject',
    summary: 'Delete a project and its builds',
    tag,
    needs: { type: 'project', action: 'delete', ...byProject },
    reply: { kind: 'none' },
    handle: async ({ params, deps, caller }) => {
      await deleteProject(deps, params, caller)
      return none
    },
  }),
]
