import { type Cursor, type Recorded, START } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Plan } from '../events/org.ts'
import type { PayloadRef } from '../events/scalars.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { DomainDoc } from './customDomains.ts'
import type { DirectoryProject } from './directoryProject.ts'
import { DOMAIN_TYPES, DomainDirectory } from './domainDirectory.ts'
import {
  PROJECT_TYPES,
  ProjectDirectory,
  type ProjectSeed,
  type UnreadableBuild,
} from './projectDirectory.ts'
import { type DirectoryEnv, TENANT_TYPES, TenantDirectory, type TenantSeed } from './tenantDirectory.ts'
import { Waiters } from './waiters.ts'
import { type Deployed, webhookKey, type Wired, type Wiring } from './wiring.ts'

export type { DirectoryEnv } from './tenantDirectory.ts'

export interface DirectorySeed extends TenantSeed, ProjectSeed {
  readonly domains: readonly DomainDoc[]
  /** The seed contains the log at least up to this cursor. */
  readonly cursor: Cursor
}

const TYPES: readonly EventType[] = [...new Set([...TENANT_TYPES, ...PROJECT_TYPES, ...DOMAIN_TYPES])]

/**
 * The read model in the memory of every node: environments, projects, deployed functions and custom domains. It is seeded
 * from the read models and then follows the log. Folding an event twice changes nothing.
 */
export class Directory {
  readonly domains = new DomainDirectory()
  readonly #tenants = new TenantDirectory()
  readonly #projects: ProjectDirectory
  readonly #waiting = new Waiters()
  #position: Cursor = START

  /** `loadFunctions` reads a list of functions from the blobs. */
  constructor(loadFunctions: (ref: PayloadRef) => Promise<unknown>) {
    const isDeleted = (env_id: string) => this.#tenants.isDeleted(env_id)
    this.#projects = new ProjectDirectory({ loadFunctions, isDeleted })
  }

  async seed(seed: DirectorySeed): Promise<void> {
    this.#tenants.seed(seed)
    await this.#projects.seed(seed)
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

  /** Calls back with each project whose functions, network or schedules changed. */
  onChange(listener: (project_id: string) => void): () => void {
    return this.#projects.onChange(listener)
  }

  /** An environment with an import in progress does not exist. */
  env(env_id: string): DirectoryEnv | undefined {
    return this.#tenants.env(env_id)
  }

  /** Whether an import into an environment that exists is in progress, or was interrupted. */
  isImporting(env_id: string): boolean {
    return this.#tenants.isImporting(env_id)
  }

  /** When the environment was created, or the latest import into it ended; milliseconds since 1970, 0 if unknown. */
  usedSince(env_id: string): number {
    return this.#tenants.usedSince(env_id)
  }

  /** The organization that an environment counts for. An unknown environment counts for itself. */
  orgIdOf(env_id: string): string {
    return this.#tenants.orgIdOf(env_id)
  }

  /** The ids of an organization's environments. */
  envsOf(org_id: string): Iterable<string> {
    return this.#tenants.envsOf(org_id)
  }

  /** The ids of the environments that the organization had, if their runs may count as usage of this month. */
  deletedEnvsOf(org_id: string): Iterable<string> {
    return this.#tenants.deletedEnvsOf(org_id)
  }

  /** A deleted environment has no runs in this month: it has none in later ones, unless something of it is in progress. */
  forgetUsage(env_id: string): void {
    this.#tenants.forgetUsage(env_id)
  }

  /** The plan of the organization of a deleted environment; undefined if that was deleted, too. */
  planOfDeleted(env_id: string): Plan | undefined {
    return this.#tenants.planOfDeleted(env_id)
  }

  /** Also one with an import in progress. */
  envAt(orgSlug: string, envName: string): DirectoryEnv | undefined {
    return this.#tenants.envAt(orgSlug, envName)
  }

  /** Returns the environment of an active custom domain, also one with an import in progress. */
  envOfDomain(domain: string): DirectoryEnv | undefined {
    const known = this.domains.proved(domain)
    return known?.status === 'active' ? this.#tenants.known(known.env_id) : undefined
  }

  /** Returns a project of the environment by id or name. */
  project(env_id: string, idOrName: string): DirectoryProject | undefined {
    return this.#projects.project(env_id, idOrName)
  }

  projectById(project_id: string): DirectoryProject | undefined {
    return this.#projects.projectById(project_id)
  }

  /** The projects of an organization, in all its environments. */
  *projectsOf(org_id: string): Generator<DirectoryProject> {
    for (const project of this.#projects.all())
      if (this.#tenants.orgIdOf(project.env_id) === org_id) yield project
  }

  /** Every project of every environment. */
  projects(): IterableIterator<DirectoryProject> {
    return this.#projects.all()
  }

  /** Whether a build of the project is a live (development) build. */
  isLive(project_id: string, build_id: string): boolean {
    return this.#projects.isLive(project_id, build_id)
  }

  /** The builds whose lists of functions cannot be read. */
  unreadable(): Generator<UnreadableBuild> {
    return this.#projects.unreadable()
  }

  /** The projects of an environment with a deployed build whose functions are not known. */
  unreadableIn(env_id: string): Wiring['unreadable'] {
    return this.#projects.wiringOf(env_id).unreadable
  }

  /** Reads the lists again that could not be read. */
  repair(): Promise<void> {
    return this.#projects.repair()
  }

  handlersOf(env_id: string, eventType: string): readonly Wired[] {
    return this.#projects.wiringOf(env_id).handlers.get(eventType) ?? []
  }

  webhookAt(env_id: string, method: string, service: string, path: string): Wired | undefined {
    return this.#projects.wiringOf(env_id).webhooks.get(webhookKey({ method, service, path }))
  }

  /** The webhooks of a service whose path has parameters. */
  webhookPatterns(env_id: string, method: string, service: string): readonly Wired[] {
    return this.#projects.wiringOf(env_id).patterns.get(`${method} ${service}`) ?? []
  }

  /** The functions of the environment that are tools, by name in alphabetical order. */
  toolsOf(env_id: string): ReadonlyMap<string, Wired> {
    return this.#projects.wiringOf(env_id).tools
  }

  /** Returns a deployed function by `ns/var`: that of the project, or the first one in the environment. */
  functionAt(env_id: string, ref: string, project_id?: string): Deployed | undefined {
    return this.#projects.functionAt(env_id, ref, project_id)
  }

  async #apply(recorded: Recorded): Promise<void> {
    this.#tenants.apply(recorded)
    this.domains.apply(recorded)
    await this.#projects.apply(recorded)
  }
}
