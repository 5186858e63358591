import Type from 'typebox'
import { AppError } from '../../errors.ts'
import { demandReadable } from '../../commands/projects/demandReadable.ts'
import type { DirectoryProject } from '../../projections/directoryProject.ts'
import { presentFunction } from '../present/function.ts'
import { Paging } from '../paging.ts'
import type { Ask } from '../route.ts'
import { type ApiTool, apiTool } from './tool.ts'

const readsBuilds = [{ type: 'build', action: 'read', somewhere: true }] as const

const Project = {
  project: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'Only this project, by id or name' }),
  ),
}

/** The projects of the environment whose builds the credential may read, by name. */
const projectsFor = async (ask: Ask, wanted: string | undefined): Promise<readonly DirectoryProject[]> => {
  const {
    credential: { env_id, permissions },
    deps: { views },
  } = ask
  await views.settled('builds', 'projects')
  const isReadable = ({ project_id, name }: DirectoryProject): boolean =>
    permissions.allows('build', 'read', project_id) || permissions.allows('build', 'read', name)
  const found = [...views.directory.projects()]
    .filter((project) => project.env_id === env_id && isReadable(project))
    .filter(({ project_id, name }) => wanted === undefined || wanted === project_id || wanted === name)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  if (wanted !== undefined && found.length === 0)
    throw new AppError('not_found', `No project ${JSON.stringify(wanted.slice(0, 80))}`)
  return found
}

const buildOf = (build: DirectoryProject['deployed']) =>
  build && {
    build_id: build.build_id,
    hash: build.hash,
    since: build.since,
    functions: build.unreadable ? null : build.functions.length,
  }

export const projectTools: readonly ApiTool[] = [
  apiTool({
    name: 'list_functions',
    title: 'List functions',
    description:
      'Lists the functions of the deployed builds with what starts them: events, schedules, webhooks, MCP.',
    needs: readsBuilds,
    readOnly: true,
    input: Type.Object({
      ...Project,
      limit: Type.Optional(Paging.limit),
      offset: Type.Optional(Paging.offset),
    }),
    call: async (ask, { project, limit = 20, offset = 0 }) => {
      const projects = await projectsFor(ask, project)
      if (project !== undefined) for (const each of projects) demandReadable(each, each.deployed)
      const unreadable = projects.filter(({ deployed }) => deployed?.unreadable).map(({ name }) => name)
      const all = projects.flatMap(({ name, deployed }) =>
        (deployed?.functions ?? []).map((fn) => ({ project: name, fn })),
      )
      const data = all
        .slice(offset, offset + limit)
        .map(({ project: name, fn }) => ({ project: name, ...presentFunction(fn) }))
      const has_more = offset + data.length < all.length
      const pagination = { total: all.length, limit, offset, has_more }
      return { data, pagination, ...(unreadable.length > 0 && { unreadable }) }
    },
  }),
  apiTool({
    name: 'deploy_status',
    title: 'Show what is deployed',
    description:
      'Shows for each project which build is deployed since when, and the newest live (development) build.',
    needs: readsBuilds,
    readOnly: true,
    input: Type.Object(Project),
    call: async (ask, { project }) => ({
      projects: (await projectsFor(ask, project)).map(({ project_id, name, deployed, live }) => ({
        project_id,
        project: name,
        deployed: buildOf(deployed),
        live: buildOf(live),
      })),
    }),
  }),
]
