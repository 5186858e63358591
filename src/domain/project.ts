import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

type Project =
  | { readonly status: 'absent' }
  | { readonly status: 'deleted' }
  | {
      readonly status: 'active'
      readonly env_id: string
      readonly name: string
      readonly builds: ReadonlyMap<string, 'release' | 'live'>
      readonly deployed: string | null
    }

export type ProjectCommand =
  | { readonly type: 'CreateProject'; readonly project_id: string; readonly name: string }
  | { readonly type: 'RenameProject'; readonly project_id: string; readonly name: string }
  | { readonly type: 'DeleteProject'; readonly project_id: string }
  | { readonly type: 'UploadBuild'; readonly build: Omit<EventOf<'BuildUploaded'>, 'type'> }
  | {
      readonly type: 'DeployBuild'
      readonly build: Pick<
        EventOf<'BuildUploaded'>,
        'build_id' | 'project_id' | 'hash' | 'functions' | 'functions_ref'
      >
    }

export type ProjectEvent = EventOf<
  'ProjectCreated' | 'ProjectRenamed' | 'ProjectDeleted' | 'BuildUploaded' | 'BuildDeployed'
>

/** The rules of a project and its builds: at most one build is deployed. */
export const project: Decider<Project, ProjectCommand, ProjectEvent> = {
  initial: () => ({ status: 'absent' }),

  decide(command, project) {
    if (command.type === 'CreateProject') {
      if (project.status !== 'absent') return [] // asked twice is asked once
      return [{ type: 'ProjectCreated', project_id: command.project_id, name: command.name }]
    }
    if (project.status !== 'active') throw new AppError('not_found', 'No such project')
    switch (command.type) {
      case 'RenameProject':
        if (project.name === command.name) return []
        return [{ type: 'ProjectRenamed', project_id: command.project_id, name: command.name }]
      case 'DeleteProject':
        return [
          { type: 'ProjectDeleted', project_id: command.project_id, build_ids: [...project.builds.keys()] },
        ]
      case 'UploadBuild':
        if (project.builds.has(command.build.build_id)) return []
        return [{ type: 'BuildUploaded', ...command.build }]
      case 'DeployBuild': {
        const { build_id } = command.build
        if (!project.builds.has(build_id)) throw new AppError('not_found', `No build ${build_id}`)
        if (project.builds.get(build_id) === 'live') {
          throw new AppError(
            'bad_request',
            'build_id: a live build is not deployed; upload it without `live`',
          )
        }
        if (project.deployed === build_id) return []
        return [
          {
            type: 'BuildDeployed',
            ...command.build,
            ...(project.deployed !== null && { previous_build_id: project.deployed }),
          },
        ]
      }
      default:
        return command satisfies never
    }
  },

  evolve(project, { event, metadata }) {
    if (event.type === 'ProjectCreated') {
      return {
        status: 'active',
        env_id: metadata.env_id ?? '',
        name: event.name,
        builds: new Map(),
        deployed: null,
      }
    }
    if (project.status !== 'active') return project
    switch (event.type) {
      case 'ProjectRenamed':
        return { ...project, name: event.name }
      case 'ProjectDeleted':
        return { status: 'deleted' }
      case 'BuildUploaded':
        return { ...project, builds: new Map(project.builds).set(event.build_id, event.build_type) }
      case 'BuildDeployed':
        return { ...project, deployed: event.build_id }
      default:
        return project
    }
  },
}
