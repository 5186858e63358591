import { isRetryable, messageOf } from '../errors.ts'
import { envIdOf, type Recorded } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { FunctionSpec } from '../events/project.ts'
import type { PayloadRef } from '../events/scalars.ts'
import type { DirectoryBuild, DirectoryProject } from './directoryProject.ts'
import { functionIn } from './functionIndex.ts'
import { LiveBuilds } from './liveBuilds.ts'
import { pausesAfter } from './pauses.ts'
import { type Deployed, isWiredAs, type Wiring, wiringOf, partsOfRef } from './wiring.ts'

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

/** A build of a project whose functions the directory contains. */
type Slot = 'deployed' | 'live'

/** A build whose list of functions cannot be read. */
export interface UnreadableBuild {
  readonly project_id: string
  readonly slot: Slot
  readonly build: DirectoryBuild & Required<Pick<DirectoryBuild, 'unreadable'>>
}

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

  /** Returns a project of the environment by id or name. The id of a project of another environment is only a name (I7). */
  project(env_id: string, idOrName: string): DirectoryProject | undefined {
    const byId = this.#projects.get(idOrName)
    if (byId?.env_id === env_id) return byId
    return this.#projects.get(this.#byName.get(`${env_id}/${idOrName}`) ?? '')
  }

  projectById(project_id: string): DirectoryProject | undefined {
    return this.#projects.get(project_id)
  }

  all(): IterableIterator<DirectoryProject> {
    return this.#projects.values()
  }

  *unreadable(): Generator<UnreadableBuild> {
    for (const { project_id, deployed, live } of this.#projects.values())
      for (const [slot, build] of Object.entries({ deployed, live }) as [Slot, DirectoryBuild | null][])
        if (build?.unreadable) yield { project_id, slot, build: { ...build, unreadable: build.unreadable } }
  }

  /** Reads the lists again that could not be read: an operator may have restored their files. */
  async repair(): Promise<void> {
    for (const { project_id, slot, build } of this.unreadable()) {
      const list = await this.#listAt(build.unreadable.ref)
      const { hash, build_id, since } = build
      const now = this.#projects.get(project_id)?.[slot]
      const isSame = now?.build_id === build_id && now.since === since
      if (!list.unreadable && isSame) this.#putBuild(project_id, slot, { build_id, hash, since, ...list })
    }
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
    const { ns, name } = partsOfRef(ref)
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
    this.#changed(project, null)
  }

  #putProject({ project_id, env_id, name, network, pauses, deployed, live }: DirectoryProject): void {
    const project = { project_id, env_id, name, network, pauses, deployed, live }
    const before = this.#projects.get(project_id) ?? null
    this.#projects.set(project_id, project)
    this.#byName.set(`${env_id}/${name}`, project_id)
    this.#changed(before, project)
  }

  #forgetName({ project_id, env_id, name }: DirectoryProject): void {
    const key = `${env_id}/${name}`
    if (this.#byName.get(key) === project_id) this.#byName.delete(key)
  }

  async #setBuild(
    project_id: string,
    slot: Slot,
    { build_id, hash, functions, functions_ref }: FunctionsOf & { build_id: string; hash: string },
    since: string,
  ): Promise<void> {
    const list = functions
      ? { functions }
      : functions_ref
        ? await this.#listAt(functions_ref)
        : { functions: [] }
    this.#putBuild(project_id, slot, { build_id, hash, since, ...list })
  }

  #putBuild(project_id: string, slot: Slot, build: DirectoryBuild): void {
    const project = this.#projects.get(project_id)
    if (!project) return
    this.#putProject({
      ...project,
      [slot]: slot === 'live' ? this.#liveBuilds.add(project_id, build) : build,
    })
  }

  /**
   * A list that is damaged or missing concerns its project only, so the fold continues. The list of a build that was
   * deleted since is gone too; a later fact then replaces the build or its project.
   */
  async #listAt(ref: PayloadRef): Promise<Pick<DirectoryBuild, 'functions' | 'unreadable'>> {
    try {
      return { functions: (await this.#loadFunctions(ref)) as FunctionSpec[] }
    } catch (error) {
      if (isRetryable(error)) throw error
      return { functions: [], unreadable: { ref, reason: messageOf(error) } }
    }
  }

  /** The wiring of 50,000 functions takes long, so a pause or the upload of a live build does not drop it. */
  #changed(before: DirectoryProject | null, after: DirectoryProject | null): void {
    const project = after ?? before
    if (!project) return
    if (!isWiredAs(before, after)) this.#wiring.delete(project.env_id)
    for (const listener of this.#listeners) listener(project.project_id)
  }
}
