import { projectName } from '../bundle/settings.ts'
import type { Build, Project } from '../client/index.ts'
import { onOneLine } from '../logger.ts'
import { type CliCommand, command } from './command.ts'
import { bytes } from './figures.ts'
import { listOfProjects, type OfProject, ofProject, projectsOf } from './projectOption.ts'
import type { Column } from './table.ts'

const group = 'projects'
const project = { description: 'the project: its name or its id' }

const columns: readonly Column<Project>[] = [
  { title: 'NAME', of: ({ name }) => name, cut: true },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'ID', of: ({ project_id }) => project_id },
]

const buildColumns: readonly Column<OfProject<Build>>[] = [
  { title: 'PROJECT', of: (each) => each.project, cut: true },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'TYPE', of: ({ build_type }) => build_type },
  { title: 'DEPLOYED', of: ({ deployed }) => (deployed ? 'yes' : '-') },
  { title: 'SIZE', of: ({ size }) => bytes(size), align: 'right' },
  { title: 'ID', of: ({ build_id }) => build_id },
]

export const projectCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    isDefault: true,
    summary: 'list the projects of the environment',
    description: 'Lists the projects of the environment. svc deploy creates a project that is missing.',
    ofEnvironment: true,
    examples: ['svc projects', 'svc projects list --json'],
    async run({ environment, table }) {
      const found = await projectsOf(environment())
      return { json: found, text: table(found, columns) }
    },
  }),
  command({
    group,
    name: 'rename',
    summary: 'rename a project',
    description:
      'Renames a project. Its builds, secrets and runs stay, and so do the URLs of its webhooks. The folder that it is deployed from ' +
      'must name it too, or the next svc deploy creates a project with the former name.',
    ofEnvironment: true,
    arguments: { project, name: { description: 'its new name', parse: projectName } },
    examples: ['svc projects rename orders shop'],
    async run({ args, environment }) {
      const path = { project: args.project }
      const json = await environment().request('PATCH /v1/projects/{project}', {
        path,
        body: { name: args.name },
      })
      return { json, text: `${onOneLine(`Renamed ${args.project} to ${json.name}`)}\n` }
    },
  }),
  command({
    group,
    name: 'delete',
    summary: 'delete a project with everything in it',
    description:
      'Deletes a project. Its webhooks and schedules end at once, and its retries do not begin. Its builds and secrets are removed. ' +
      'Its runs stay in the lists. This cannot be undone.',
    ofEnvironment: true,
    arguments: { project },
    examples: ['svc projects delete orders', 'svc projects delete orders --yes'],
    confirms: true,
    async run({ args, environment, confirm }) {
      const service = environment()
      const { project_id, name } = await service.request('GET /v1/projects/{project}', {
        path: { project: args.project },
      })
      await confirm(`Delete the project ${name} (${project_id}) with its builds and secrets?`)
      await service.request('DELETE /v1/projects/{project}', { path: { project: project_id } })
      return {
        json: { deleted: project_id },
        text: `${onOneLine(`Deleted project ${name} (${project_id})`)}\n`,
      }
    },
  }),
  command({
    name: 'builds',
    summary: 'list the builds of the projects, newest first',
    description:
      'Lists the builds of a project, or of all, each project newest first. svc rollback --to deploys one of them again.',
    ofEnvironment: true,
    options: { project: ofProject },
    examples: ['svc builds', 'svc builds --project orders --json'],
    async run({ options, environment, table }) {
      const service = environment()
      const found = await listOfProjects(service, options.project, {
        page: (name, query) =>
          service.request('GET /v1/projects/{project}/builds', { path: { project: name }, query }),
        idOf: ({ build_id }) => build_id,
      })
      return { json: found, text: table(found, buildColumns) }
    },
  }),
]
