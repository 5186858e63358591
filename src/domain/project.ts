import { AppError, isAppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'
import { decidePause, evolvePauses, type PauseCommand, type PauseEvent } from './pauses.ts'
import { type WebhookAddress, webhooksIn } from './webhook.ts'

type BuildOf = EventOf<'BuildUploaded'>

/** A build of a project; `size` contains the list of its functions if that is in the blobs. */
export interface KnownBuild extends Pick<BuildOf, 'hash' | 'size' | 'build_type' | 'storage_path'> {
  /** SHA-256 of the list of its functions if that is in the blobs. */
  readonly list?: string | undefined
}

/** The newest live builds of a project that are kept beside the deployed one; an upload of another one deletes the oldest. */
const KEPT_LIVE = 5

/** The deployed build of a project. */
export interface DeployedBuild {
  readonly build_id: string
  /** Undefined when the list of functions is in the blobs under `functions_ref`. */
  readonly webhooks: readonly WebhookAddress[] | undefined
  readonly functions_ref: BuildOf['functions_ref']
}

export interface ActiveProject {
  readonly status: 'active'
  readonly name: string
  /** The hosts that functions may reach; null: every public host. */
  readonly network: readonly string[] | null
  readonly builds: ReadonlyMap<string, KnownBuild>
  /** Ids of deleted builds: no other build gets one of them. There is no limit of their number. */
  readonly deleted: ReadonlySet<string>
  readonly deployed: DeployedBuild | null
  /** The functions that no tick starts, as `ns/var`. */
  readonly paused: ReadonlySet<string>
  /** Revision of the last deployment or abandoned deployment: one that was decided before it takes no effect. */
  readonly fence: number
  /** Revision of the last name or abandoned rename: a rename that was decided before it takes no effect. */
  readonly nameFence: number
}

type Project =
  | {
      readonly status: 'absent'
      /** Revision of the last abandoned creation; -1 for none. A creation that was decided before it takes no effect. */
      readonly nameFence: number
    }
  | { readonly status: 'deleted' }
  | ActiveProject

/** The fold changes its lists in place: a copy for each fact would make long streams slow. */
interface Folding extends ActiveProject {
  readonly builds: Map<string, KnownBuild>
  readonly deleted: Set<string>
  readonly paused: Set<string>
}
type State = Exclude<Project, ActiveProject> | Folding

export type ProjectCommand =
  | {
      readonly type: 'CreateProject'
      readonly project_id: string
      readonly name: string
      readonly network?: readonly string[] | null
      /** The `nameFence` for which the name was reserved; default -1. */
      readonly fence?: number
    }
  | { readonly type: 'AbandonCreation'; readonly project_id: string; readonly fence: number }
  | {
      readonly type: 'ChangeNetwork'
      readonly project_id: string
      readonly network: readonly string[] | null
    }
  | {
      readonly type: 'RenameProject'
      readonly project_id: string
      readonly name: string
      /** The `nameFence` for which the name was reserved. */
      readonly fence: number
      /** Changes with the name: a refusal of one command changes neither. */
      readonly network?: readonly string[] | null | undefined
    }
  | { readonly type: 'AbandonRename'; readonly project_id: string; readonly fence: number }
  | { readonly type: 'DeleteProject'; readonly project_id: string }
  | {
      readonly type: 'UploadBuild'
      readonly build: Omit<BuildOf, 'type'>
      /** The number of builds that the plan allows. */
      readonly most?: number
    }
  | { readonly type: 'DeleteBuild'; readonly project_id: string; readonly build_id: string }
  | {
      readonly type: 'DeployBuild'
      readonly build: Pick<BuildOf, 'build_id' | 'project_id' | 'hash' | 'functions' | 'functions_ref'>
      /** The fence for which the build's webhooks were reserved. */
      readonly fence: number
    }
  | { readonly type: 'AbandonDeployment'; readonly project_id: string; readonly fence: number }
  | PauseCommand

export type ProjectEvent =
  | PauseEvent
  | EventOf<
      | 'ProjectCreated'
      | 'CreationAbandoned'
      | 'ProjectRenamed'
      | 'ProjectNetworkChanged'
      | 'RenameAbandoned'
      | 'ProjectDeleted'
      | 'BuildUploaded'
      | 'BuildDeployed'
      | 'BuildDeleted'
      | 'DeploymentAbandoned'
    >

/** Returns the project, or throws `not_found` when it does not exist or was deleted. */
export const activeProject = (project: Project): ActiveProject => {
  if (project.status !== 'active') throw new AppError('not_found', 'No such project')
  return project
}

/** The builds of a project; none when it does not exist or was deleted. */
export const buildsOf = (project: Project): ActiveProject['builds'] =>
  project.status === 'active' ? project.builds : new Map()

/** Returns whether the same build exists already. Throws `conflict` when another one has its id. */
export const buildExists = (
  { builds, deleted }: Pick<ActiveProject, 'builds' | 'deleted'>,
  { build_id, hash, build_type }: Pick<BuildOf, 'build_id' | 'hash' | 'build_type'>,
): boolean => {
  if (deleted.has(build_id))
    throw new AppError('conflict', `build_id: ${build_id} was deleted; upload the build under another id`)
  const existing = builds.get(build_id)
  if (!existing) return false
  if (existing.hash !== hash)
    throw new AppError('conflict', `build_id: ${build_id} exists with the hash ${existing.hash}, not ${hash}`)
  if (existing.build_type !== build_type)
    throw new AppError('conflict', `build_id: ${build_id} exists as a ${existing.build_type} build`)
  return true
}

/** Throws `not_found` unless the project has the build. */
export const admitDeployment = ({ builds }: Pick<ActiveProject, 'builds'>, build_id: string): void => {
  if (!builds.has(build_id)) throw new AppError('not_found', `No build ${build_id}`)
}

/** Returns the live builds that another build replaces. Throws `quota_exceeded` if the project would have too many builds. */
export const admitBuild = (
  { builds, deployed }: Pick<ActiveProject, 'builds' | 'deployed'>,
  build_type: BuildOf['build_type'],
  most: number,
): [string, KnownBuild][] => {
  const isOld = ([build_id, known]: [string, KnownBuild]) =>
    known.build_type === 'live' && build_id !== deployed?.build_id // functions run on the deployed one
  const live = build_type === 'live' ? [...builds].filter(isOld) : []
  const old = live.slice(0, Math.max(0, live.length + 1 - KEPT_LIVE))
  if (builds.size - old.length >= most)
    throw new AppError(
      'quota_exceeded',
      `The plan allows ${most} builds per project; delete a build that is not deployed`,
    )
  return old
}

/** An accepted build, and the end of the live builds that it replaces. */
const uploaded = (
  project: Pick<ActiveProject, 'builds' | 'deployed'>,
  { build, most = Infinity }: { readonly build: Omit<BuildOf, 'type'>; readonly most?: number },
): ProjectEvent[] => {
  const { project_id, build_type } = build
  const ended = ([build_id, { size }]: [string, KnownBuild]) =>
    ({ type: 'BuildDeleted', build_id, project_id, size, reason: 'superseded' }) as const
  return [{ type: 'BuildUploaded', ...build }, ...admitBuild(project, build_type, most).map(ended)]
}

/** Throws `not_found`, or `conflict` for the deployed build, on which functions run. */
const deleted = (
  { builds, deployed, deleted: gone }: ActiveProject,
  { project_id, build_id }: { readonly project_id: string; readonly build_id: string },
): ProjectEvent[] => {
  if (gone.has(build_id)) return [] // a repeated command deletes it once
  const build = builds.get(build_id)
  if (!build) throw new AppError('not_found', `No build ${build_id}`)
  if (deployed?.build_id === build_id)
    throw new AppError('conflict', `build_id: ${build_id} is deployed; deploy another build first`)
  return [{ type: 'BuildDeleted', build_id, project_id, size: build.size, reason: 'asked' }]
}

const lateFor = (change: 'creation' | 'deployment' | 'rename', fence: number): AppError =>
  new AppError('conflict', `Another change of the project came before its ${change}`, { data: { fence } })

/** Returns whether a change was refused because another one came first: it may be tried again on the new fence. */
export const isLate = (error: unknown): boolean =>
  isAppError(error, 'conflict') && error.data['fence'] !== undefined

const networkChanged = (
  project: Pick<ActiveProject, 'network'>,
  { project_id, network }: Pick<Extract<ProjectCommand, { type: 'RenameProject' }>, 'project_id' | 'network'>,
): ProjectEvent[] =>
  network === undefined || JSON.stringify(network) === JSON.stringify(project.network)
    ? []
    : [{ type: 'ProjectNetworkChanged', project_id, network: network && [...network] }]

/** The rules of a project and its builds: at most one build is deployed. */
export const project: Decider<State, ProjectCommand, ProjectEvent> = {
  initial: () => ({ status: 'absent', nameFence: -1 }),

  decide(command, state) {
    if (command.type === 'CreateProject') {
      if (state.status !== 'absent') return [] // a repeated command creates one project
      const { project_id, name, network, fence = -1 } = command
      if (state.nameFence !== fence) throw lateFor('creation', state.nameFence)
      return [{ type: 'ProjectCreated', project_id, name, ...(network && { network: [...network] }) }]
    }
    if (command.type === 'AbandonCreation') {
      if (state.status !== 'absent' || state.nameFence !== command.fence) return []
      return [{ type: 'CreationAbandoned', project_id: command.project_id }]
    }
    if (command.type === 'AbandonDeployment') {
      if (state.status !== 'active' || state.fence !== command.fence) return []
      return [{ type: 'DeploymentAbandoned', project_id: command.project_id }]
    }
    if (command.type === 'AbandonRename') {
      if (state.status !== 'active' || state.nameFence !== command.fence) return []
      return [{ type: 'RenameAbandoned', project_id: command.project_id }]
    }
    const project = activeProject(state)
    switch (command.type) {
      case 'RenameProject': {
        const { project_id, name } = command
        const network = networkChanged(project, command)
        if (project.name === name) return network
        if (project.nameFence !== command.fence) throw lateFor('rename', project.nameFence)
        return [{ type: 'ProjectRenamed', project_id, name }, ...network]
      }
      case 'ChangeNetwork':
        return networkChanged(project, command)
      case 'DeleteProject':
        return [
          { type: 'ProjectDeleted', project_id: command.project_id, build_ids: [...project.builds.keys()] },
        ]
      case 'UploadBuild':
        return buildExists(project, command.build) ? [] : uploaded(project, command)
      case 'DeleteBuild':
        return deleted(project, command)
      case 'DeployBuild': {
        const { build_id } = command.build
        admitDeployment(project, build_id)
        if (project.deployed?.build_id === build_id) return []
        if (project.fence !== command.fence) throw lateFor('deployment', project.fence)
        return [
          {
            type: 'BuildDeployed',
            ...command.build,
            ...(project.deployed && { previous_build_id: project.deployed.build_id }),
          },
        ]
      }
      case 'PauseSchedule':
      case 'ResumeSchedule':
        return decidePause(command, project.paused)
      default:
        return command satisfies never
    }
  },

  sizeOf: (project) =>
    project.status === 'active' ? project.builds.size + project.deleted.size + project.paused.size : 0,

  evolve(project, { event, revision }: Folded<ProjectEvent>) {
    const changed = (changes: Partial<Folding>): State =>
      project.status === 'active' ? { ...project, ...changes } : project
    switch (event.type) {
      case 'ProjectCreated':
        return {
          status: 'active',
          name: event.name,
          network: event.network ?? null,
          builds: new Map(),
          deleted: new Set(),
          deployed: null,
          paused: new Set(),
          fence: revision,
          nameFence: revision,
        }
      case 'CreationAbandoned':
        return project.status === 'absent' ? { ...project, nameFence: revision } : project
      case 'ProjectRenamed':
        return changed({ name: event.name, nameFence: revision })
      case 'ProjectNetworkChanged':
        return changed({ network: event.network })
      case 'RenameAbandoned':
        return changed({ nameFence: revision })
      case 'SchedulePaused':
      case 'ScheduleResumed':
        if (project.status === 'active') evolvePauses(project.paused, event)
        return project
      case 'ProjectDeleted':
        return project.status === 'active' ? { status: 'deleted' } : project
      case 'BuildUploaded': {
        if (project.status !== 'active') return project
        const { build_id, hash, build_type, storage_path, functions_ref: ref } = event
        const size = event.size + (ref?.size ?? 0)
        const build = { hash, size, build_type, storage_path, ...(ref && { list: ref.sha256 }) }
        project.builds.set(build_id, build)
        return project
      }
      case 'BuildDeleted': {
        if (project.status !== 'active') return project
        project.builds.delete(event.build_id)
        project.deleted.add(event.build_id)
        return project
      }
      case 'BuildDeployed': {
        const { build_id, functions, functions_ref } = event
        const webhooks = functions && webhooksIn(functions)
        return changed({ deployed: { build_id, webhooks, functions_ref }, fence: revision })
      }
      case 'DeploymentAbandoned':
        return changed({ fence: revision })
      default:
        return foreign(event)
    }
  },
}
