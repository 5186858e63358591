import { isAppError } from '../errors.ts'
import { type Cursor, envIdOf, type Recorded, START } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Plan } from '../events/org.ts'
import type { FunctionSpec } from '../events/project.ts'
import type { PayloadRef } from '../events/scalars.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { DomainDoc } from './customDomains.ts'
import type { DirectoryBuild, DirectoryProject } from './directoryProject.ts'
import { DOMAIN_TYPES, DomainDirectory } from './domainDirectory.ts'
import { LiveBuilds } from './liveBuilds.ts'
import { Waiters } from './waiters.ts'
import { type Deployed, webhookKey, type Wiring, wiringOf } from './wiring.ts'

export interface DirectoryEnv {
  readonly env_id: string
  readonly name: string
  readonly org_id: string
  readonly org_slug: string
  readonly plan: Plan
}

type FunctionsOf = { readonly functions?: readonly FunctionSpec[]; readonly functions_ref?: PayloadRef }

export interface DirectorySeed {
  readonly orgs: readonly { org_id: string; slug: string; plan: Plan }[]
  readonly envs: readonly { env_id: string; org_id: string; name: string; active?: boolean }[]
  readonly projects: readonly Pick<DirectoryProject, 'project_id' | 'env_id' | 'name' | 'network'>[]
  readonly builds: readonly (FunctionsOf & {
    build_id: string
    project_id: string
    hash: string
    deployed: boolean
    build_type: 'release' | 'live'
    updated_at: string
  })[]
  readonly domains: readonly DomainDoc[]
  /** The seed contains the log at least up to this cursor. */
  readonly cursor: Cursor
}

const TYPES: readonly EventType[] = [
  'OrgCreated',
  'OrgChanged',
  'OrgDeleted',
  'EnvCreated',
  'EnvDeleted',
  'ProjectCreated',
  'ProjectRenamed',
  'ProjectNetworkChanged',
  'ProjectDeleted',
  'BuildUploaded',
  'BuildDeployed',
  'BuildDeleted',
  ...DOMAIN_TYPES,
]

/**
 * The read model in the memory of every node: environments, projects, deployed functions and custom domains. It is seeded
 * from the read models and then follows the log. Folding an event twice changes nothing.
 */
export class Directory {
  readonly #orgs = new Map<string, { slug: string; plan: Plan }>()
  readonly #envs = new Map<string, DirectoryEnv>()
  readonly #envByPath = new Map<string, DirectoryEnv>()
  readonly #envsOfOrg = new Map<string, Set<string>>()
  /** The organization of each deleted environment, until the organization is deleted. */
  readonly #deletedEnvs = new Map<string, string>()
  readonly domains = new DomainDirectory()
  readonly #projects = new Map<string, DirectoryProject>()
  readonly #byName = new Map<string, string>()
  readonly #liveBuilds = new LiveBuilds<DirectoryBuild>()
  readonly #wiring = new Map<string, Wiring>()
  readonly #waiting = new Waiters()
  readonly #listeners = new Set<(project_id: string) => void>()
  readonly #loadFunctions: (ref: PayloadRef) => Promise<unknown>
  #position: Cursor = START

  /** `loadFunctions` reads a list of functions from the blobs. */
  constructor(loadFunctions: (ref: PayloadRef) => Promise<unknown>) {
    this.#loadFunctions = loadFunctions
  }

  async seed(seed: DirectorySeed): Promise<void> {
    for (const org of seed.orgs) this.#orgs.set(org.org_id, org)
    for (const env of seed.envs)
      if (env.active === false) this.#deletedEnvs.set(env.env_id, env.org_id)
      else this.#addEnv(env)
    for (const project of seed.projects) this.#putProject({ ...project, deployed: null, live: null })
    for (const build of seed.builds) {
      if (build.deployed) await this.#setBuild(build.project_id, 'deployed', build, build.updated_at)
      if (build.build_type === 'live') await this.#setBuild(build.project_id, 'live', build, build.updated_at)
    }
    this.domains.seed(seed.domains)
    this.#position = seed.cursor
  }

  /** Follows the log until the signal aborts; `reach` waits for a position. */
  async run(store: EventStore, signal: AbortSignal): Promise<void> {
    for await (const { events, cursor } of store.subscribe({ after: this.#position, types: TYPES, signal })) {
      for (const recorded of events) await this.#apply(recorded)
      this.#position = cursor
      this.#waiting.release(cursor)
    }
  }

  get position(): Cursor {
    return this.#position
  }

  /** Resolves when the directory contains everything up to the cursor, or the signal aborts. */
  reach(cursor: Cursor, signal?: AbortSignal): Promise<void> {
    if (this.#position >= cursor) return Promise.resolve()
    return this.#waiting.wait(cursor, signal)
  }

  /** Calls back with each project whose functions or network changed. */
  onChange(listener: (project_id: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  env(env_id: string): DirectoryEnv | undefined {
    return this.#envs.get(env_id)
  }

  /** The organization that an environment counts for. An unknown environment counts for itself. */
  orgIdOf(env_id: string): string {
    return this.#envs.get(env_id)?.org_id ?? env_id
  }

  /** The ids of an organization's environments. */
  envsOf(org_id: string): Iterable<string> {
    return this.#envsOfOrg.get(org_id) ?? []
  }

  /** The ids of the environments that the organization had. */
  *deletedEnvsOf(org_id: string): Generator<string> {
    for (const [env_id, of] of this.#deletedEnvs) if (of === org_id) yield env_id
  }

  envAt(orgSlug: string, envName: string): DirectoryEnv | undefined {
    return this.#envByPath.get(`${orgSlug}/${envName}`)
  }

  /** Returns the environment of an active custom domain. */
  envOfDomain(domain: string): DirectoryEnv | undefined {
    const known = this.domains.proved(domain)
    return known?.status === 'active' ? this.#envs.get(known.env_id) : undefined
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

  /** The projects of an organization, in all its environments. */
  *projectsOf(org_id: string): Generator<DirectoryProject> {
    for (const project of this.#projects.values())
      if (this.#envs.get(project.env_id)?.org_id === org_id) yield project
  }

  /** Every project of every environment. */
  projects(): IterableIterator<DirectoryProject> {
    return this.#projects.values()
  }

  /** Whether a build of the project is a live (development) build. */
  isLive(project_id: string, build_id: string): boolean {
    return this.#liveBuilds.has(project_id, build_id)
  }

  handlersOf(env_id: string, eventType: string): readonly Deployed[] {
    return this.#wiringOf(env_id).handlers.get(eventType) ?? []
  }

  webhookAt(env_id: string, method: string, service: string, path: string): Deployed | undefined {
    return this.#wiringOf(env_id).webhooks.get(webhookKey({ method, service, path }))
  }

  /** The webhooks of a service whose path has parameters. */
  webhookPatterns(env_id: string, method: string, service: string): readonly Deployed[] {
    return this.#wiringOf(env_id).patterns.get(`${method} ${service}`) ?? []
  }

  /** The functions of the environment that are tools, by name in alphabetical order. */
  toolsOf(env_id: string): ReadonlyMap<string, Deployed> {
    return this.#wiringOf(env_id).tools
  }

  /** Returns a deployed function by `ns/var`: that of the project, or the first one in the environment. */
  functionAt(env_id: string, ref: string, project_id?: string): Deployed | undefined {
    const slash = ref.lastIndexOf('/')
    const ns = ref.slice(0, slash)
    const name = ref.slice(slash + 1)
    for (const project of this.#projects.values()) {
      if (project.env_id !== env_id || (project_id !== undefined && project.project_id !== project_id))
        continue
      const build = project.deployed
      const fn = build?.functions.find((candidate) => candidate.ns === ns && candidate.var === name)
      if (build && fn) return { project, build, fn }
    }
    return undefined
  }

  async #apply(recorded: Recorded): Promise<void> {
    const { event, at } = recorded
    switch (event.type) {
      case 'OrgCreated':
        this.#orgs.set(event.org_id, event)
        break
      case 'OrgChanged':
        if (event.plan) this.#changePlan(event.org_id, event.plan)
        break
      case 'OrgDeleted':
        for (const env_id of event.env_ids) {
          this.#removeEnv(env_id)
          this.#deletedEnvs.delete(env_id)
        }
        this.#orgs.delete(event.org_id)
        this.#envsOfOrg.delete(event.org_id)
        break
      case 'EnvCreated':
        this.#addEnv(event)
        break
      case 'EnvDeleted':
        this.#removeEnv(event.env_id)
        break
      case 'ProjectCreated':
        if (this.#deletedEnvs.has(envIdOf(recorded))) break // its request began before the deletion
        this.#putProject(
          // A project from the seed regains its name if an older fact gave the name to its former holder.
          this.#projects.get(event.project_id) ?? {
            ...event,
            env_id: envIdOf(recorded),
            network: event.network ?? null,
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
        this.domains.apply(recorded)
    }
  }

  #addEnv({ env_id, org_id, name }: { env_id: string; org_id: string; name: string }): void {
    const org = this.#orgs.get(org_id)
    if (!org || this.#deletedEnvs.has(env_id)) return
    const env = { env_id, name, org_id, org_slug: org.slug, plan: org.plan }
    this.#envs.set(env_id, env)
    this.#envByPath.set(`${org.slug}/${name}`, env)
    this.#envsOfOrg.set(org_id, (this.#envsOfOrg.get(org_id) ?? new Set()).add(env_id))
  }

  /** Its handlers, schedules and webhooks end with its projects. */
  #removeEnv(env_id: string): void {
    const env = this.#envs.get(env_id)
    if (env) {
      const path = `${env.org_slug}/${env.name}`
      if (this.#envByPath.get(path)?.env_id === env_id) this.#envByPath.delete(path)
      this.#envs.delete(env_id)
      this.#envsOfOrg.get(env.org_id)?.delete(env_id)
      this.#deletedEnvs.set(env_id, env.org_id)
    }
    for (const project of this.#projects.values()) if (project.env_id === env_id) this.#removeProject(project)
  }

  #removeProject(project: DirectoryProject): void {
    this.#projects.delete(project.project_id)
    this.#liveBuilds.forget(project.project_id)
    this.#forgetName(project)
    this.#changed(project)
  }

  #changePlan(org_id: string, plan: Plan): void {
    const org = this.#orgs.get(org_id)
    if (!org) return
    this.#orgs.set(org_id, { ...org, plan })
    for (const env of this.#envs.values()) if (env.org_id === org_id) this.#addEnv(env)
  }

  #putProject({ project_id, env_id, name, network, deployed, live }: DirectoryProject): void {
    const project = { project_id, env_id, name, network, deployed, live }
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

  #wiringOf(env_id: string): Wiring {
    const known = this.#wiring.get(env_id)
    if (known) return known
    const wiring = wiringOf([...this.#projects.values()].filter((project) => project.env_id === env_id))
    this.#wiring.set(env_id, wiring)
    return wiring
  }
}
