import { isAppError } from '../errors.ts'
import { envIdOf, type Recorded } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { FunctionSpec } from '../events/project.ts'
import type { PayloadRef } from '../events/scalars.ts'
import type { DirectoryBuild, DirectoryProject } from './directoryProject.ts'
import { functionIn } from './functionIndex.ts'
import { LiveBuilds } from './liveBuilds.ts'
import { pausesAfter } from './pauses.ts'
import { type Deployed, type Wiring, wiringOf } from './wiring.ts'

type FunctionsOf = { readonly functions?: readonly FunctionSpec[]; readonly functions_ref?: PayloadRef }

type SeedProject = Pick<DirectoryProject, 'project_id' | 'env_id' | 'name' | 'network'> &
  Partial<Pick<DirectoryProject, 'pauses'>>

export interface ProjectSeed {
  readonly projects: readonly SeedProject[]
  readonly builds: readonly (FunctionsOf & {
    build_id: string
    project_id: string
    hash: string
    deployed: boolean
    build_type: 'release' | 'live'
    updated_at: string
  })[]
}

export const PROJECT_TYPES: readonly EventType[] = [
  'OrgDeleted',
  'EnvDeleted',
  'ProjectCreated',
  'ProjectRenamed',
  'ProjectNetworkChanged',
  'SchedulePaused',
  'ScheduleResumed',
  'ProjectDeleted',
  'BuildUploaded',
  'BuildDeployed',
  'BuildDeleted',
]

interface Deps {
  /** Reads a list of functions from the blobs. */
  readonly loadFunctions: (ref: PayloadRef) => Promise<unknown>
  /** Whether an environment was deleted. */
  readonly isDeleted: (env_id: string) => boolean
}

/** The part of the directory with projects and the functions of their builds. Folding a fact twice changes nothing. */
export class ProjectDirectory {
  readonly #projects = new Map<string, DirectoryProject>()
  readonly #byName = new Map<string, string>()
  readonly #liveBuilds = new LiveBuilds<DirectoryBuild>()
  readonly #wiring = new Map<string, Wiring>()
  readonly #listeners = new Set<(project_id: string) => void>()
  readonly #loadFunctions: Deps['loadFunctions']
  readonly #isDeleted: Deps['isDeleted']

  constructor({ loadFunctions, isDeleted }: Deps) {
    this.#loadFunctions = loadFunctions
    this.#isDeleted = isDeleted
  }

  async seed({ projects, builds }: ProjectSeed): Promise<void> {
    for (const project of projects) this.#putProject({ pauses: [], ...project, deployed: null, live: null })
    for (const build of builds) {
      if (build.deployed) await this.#setBuild(build.project_id, 'deployed', build, build.updated_at)
      if (build.build_type === 'live') await this.#setBuild(build.project_id, 'live', build, build.updated_at)
    }
  }

  onChange(listener: (project_id: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns a project of the environment by id or name. */
  project(env_id: string, idOrName: string): DirectoryProject | undefined {
    const byId =
      this.#projects.get(idOrName) ?? this.#projects.get(this.#byName.get(`${env_id}/${idOrName}`) ?? '')
    return byId?.env_id === env_id ? byId : undefined
  }

  projectById(project_id: string): DirectoryProject | undefined {
    return this.#projects.get(project_id)
  }

  all(): IterableIterator<DirectoryProject> {
    return this.#projects.values()
  }

  isLive(project_id: string, build_id: string): boolean {
    return this.#liveBuilds.has(project_id, build_id)
  }

  /** The deployed functions of an environment, by their triggers. */
  wiringOf(env_id: string): Wiring {
    const known = this.#wiring.get(env_id)
    if (known) return known
    const wiring = wiringOf([...this.#projects.values()].filter((project) => project.env_id === env_id))
    this.#wiring.set(env_id, wiring)
    return wiring
  }

  functionAt(env_id: string, ref: string, project_id?: string): Deployed | undefined {
    const slash = ref.lastIndexOf('/')
    const ns = ref.slice(0, slash)
    const name = ref.slice(slash + 1)
    const named = project_id === undefined ? undefined : this.#projects.get(project_id)
    const projects = project_id === undefined ? this.#projects.values() : named ? [named] : []
    for (const project of projects) {
      const build = project.env_id === env_id ? project.deployed : null
      const fn = build && functionIn(build, ns, name)
      if (build && fn) return { project, build, fn }
    }
    return undefined
  }

  async apply(recorded: Recorded): Promise<void> {
    const { event, at } = recorded
    switch (event.type) {
      case 'OrgDeleted':
        for (const env_id of event.env_ids) this.#removeProjectsOf(env_id)
        break
      case 'EnvDeleted':
        this.#removeProjectsOf(event.env_id)
        break
      case 'ProjectCreated':
        if (this.#isDeleted(envIdOf(recorded))) break // its request began before the deletion
        this.#putProject(
          // A project from the seed regains its name if an older fact gave the name to its former holder.
          this.#projects.get(event.project_id) ?? {
            ...event,
            env_id: envIdOf(recorded),
            network: event.network ?? null,
            pauses: [],
            deployed: null,
            live: null,
          },
        )
        break
      case 'ProjectRenamed': {
        const project = this.#projects.get(event.project_id)
        if (!project) break
        this.#forgetName(project)
        this.#putProject({ ...project, name: event.name })
        break
      }
      case 'ProjectNetworkChanged': {
        const project = this.#projects.get(event.project_id)
        if (project) this.#putProject({ ...project, network: event.network })
        break
      }
      case 'SchedulePaused':
      case 'ScheduleResumed': {
        const project = this.#projects.get(event.project_id)
        if (project) this.#putProject({ ...project, pauses: pausesAfter(project.pauses, event, at) })
        break
      }
      case 'ProjectDeleted': {
        const project = this.#projects.get(event.project_id)
        if (project) this.#removeProject(project)
        break
      }
      case 'BuildUploaded':
        if (event.build_type === 'live') await this.#setBuild(event.project_id, 'live', event, at)
        break
      case 'BuildDeployed':
        await this.#setBuild(event.project_id, 'deployed', event, at)
        break
      case 'BuildDeleted': {
        const project = this.#projects.get(event.project_id)
        const live = this.#liveBuilds.remove(event.project_id, event.build_id)
        if (project?.live?.build_id === event.build_id) this.#putProject({ ...project, live })
        break
      }
      default:
    }
  }

  /** The handlers, schedules and webhooks of an environment end with its projects. */
  #removeProjectsOf(env_id: string): void {
    for (const project of this.#projects.values()) if (project.env_id === env_id) this.#removeProject(project)
  }

  #removeProject(project: DirectoryProject): void {
    this.#projects.delete(project.project_id)
    this.#liveBuilds.forget(project.project_id)
    this.#forgetName(project)
    this.#changed(project)
  }

  #putProject({ project_id, env_id, name, network, pauses, deployed, live }: DirectoryProject): void {
    const project = { project_id, env_id, name, network, pauses, deployed, live }
    this.#projects.set(project_id, project)
    this.#byName.set(`${env_id}/${name}`, project_id)
    this.#changed(project)
  }

  #forgetName({ project_id, env_id, name }: DirectoryProject): void {
    const key = `${env_id}/${name}`
    if (this.#byName.get(key) === project_id) this.#byName.delete(key)
  }

  async #setBuild(
    project_id: string,
    slot: 'deployed' | 'live',
    { build_id, hash, functions, functions_ref }: FunctionsOf & { build_id: string; hash: string },
    since: string,
  ): Promise<void> {
    const known =
      functions ?? ((functions_ref ? await this.#functionsAt(functions_ref) : []) as FunctionSpec[])
    const project = this.#projects.get(project_id)
    if (!project) return
    const build = { build_id, hash, functions: known, since }
    this.#putProject({
      ...project,
      [slot]: slot === 'live' ? this.#liveBuilds.add(project_id, build) : build,
    })
  }

  /** The list of a build that was deleted since is gone; a later fact replaces the build or its project. */
  async #functionsAt(ref: PayloadRef): Promise<unknown> {
    try {
      return await this.#loadFunctions(ref)
    } catch (error) {
      if (isAppError(error, 'not_found')) return []
      throw error
    }
  }

  #changed(project: DirectoryProject): void {
    this.#wiring.delete(project.env_id)
    for (const listener of this.#listeners) listener(project.project_id)
  }
}
