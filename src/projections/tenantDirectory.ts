import type { Recorded } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Plan } from '../events/org.ts'

export interface DirectoryEnv {
  readonly env_id: string
  readonly name: string
  readonly org_id: string
  readonly org_slug: string
  readonly plan: Plan
}

export interface TenantSeed {
  readonly orgs: readonly { org_id: string; slug: string; plan: Plan }[]
  readonly envs: readonly {
    env_id: string
    org_id: string
    name: string
    active?: boolean
    deleting?: string | null
    importing?: true
    created_at?: string
    imported_at?: string
  }[]
}

export const TENANT_TYPES: readonly EventType[] = [
  'OrgCreated',
  'OrgChanged',
  'OrgDeleted',
  'EnvCreated',
  'ImportBegun',
  'ImportAbandoned',
  'EnvImported',
  'EnvDeleted',
  'EnvPurged',
]

/** The part of the directory with organizations and environments. Folding a fact twice changes nothing. */
export class TenantDirectory {
  readonly #orgs = new Map<string, { slug: string; plan: Plan }>()
  readonly #envs = new Map<string, DirectoryEnv>()
  /** They do not exist for their users until the import is complete. */
  readonly #importing = new Set<string>()
  /** When each environment was created, or the latest import into it ended; milliseconds since 1970. */
  readonly #usedSince = new Map<string, number>()
  readonly #envByPath = new Map<string, DirectoryEnv>()
  readonly #envsOfOrg = new Map<string, Set<string>>()
  /** Each deleted environment, until its organization is deleted. `purged`: nothing can be added to it any more. */
  readonly #deletedEnvs = new Map<string, { readonly org_id: string; purged: boolean }>()
  /** By organization: the deleted environments that may have runs in this month. */
  readonly #lateUsage = new Map<string, Set<string>>()

  seed({ orgs, envs }: TenantSeed): void {
    for (const org of orgs) this.#orgs.set(org.org_id, org)
    for (const env of envs)
      if (env.active === false) this.#addDeleted(env, env.deleting === null)
      else {
        this.#addEnv(env)
        this.#usedFrom(env.env_id, env.created_at)
        this.#usedFrom(env.env_id, env.imported_at)
        if (env.importing) this.#importing.add(env.env_id)
      }
  }

  /** Also an environment with an import in progress. */
  known(env_id: string): DirectoryEnv | undefined {
    return this.#envs.get(env_id)
  }

  env(env_id: string): DirectoryEnv | undefined {
    return this.#importing.has(env_id) ? undefined : this.known(env_id)
  }

  envAt(orgSlug: string, envName: string): DirectoryEnv | undefined {
    return this.#envByPath.get(`${orgSlug}/${envName}`)
  }

  orgIdOf(env_id: string): string {
    return this.#envs.get(env_id)?.org_id ?? env_id
  }

  isImporting(env_id: string): boolean {
    return this.#importing.has(env_id)
  }

  usedSince(env_id: string): number {
    return this.#usedSince.get(env_id) ?? 0
  }

  envsOf(org_id: string): Iterable<string> {
    return this.#envsOfOrg.get(org_id) ?? []
  }

  deletedEnvsOf(org_id: string): Iterable<string> {
    return this.#lateUsage.get(org_id) ?? []
  }

  forgetUsage(env_id: string): void {
    const deleted = this.#deletedEnvs.get(env_id)
    if (deleted?.purged) this.#lateUsage.get(deleted.org_id)?.delete(env_id)
  }

  /** Whether the environment was deleted and its organization was not. */
  isDeleted(env_id: string): boolean {
    return this.#deletedEnvs.has(env_id)
  }

  /** The plan of the organization of a deleted environment; undefined if that was deleted, too. */
  planOfDeleted(env_id: string): Plan | undefined {
    const deleted = this.#deletedEnvs.get(env_id)
    return deleted && this.#orgs.get(deleted.org_id)?.plan
  }

  apply({ event, at }: Recorded): void {
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
        this.#lateUsage.delete(event.org_id)
        this.#orgs.delete(event.org_id)
        this.#envsOfOrg.delete(event.org_id)
        break
      case 'EnvCreated':
        this.#addEnv(event)
        this.#usedFrom(event.env_id, at)
        break
      case 'ImportBegun':
        if (this.#envs.has(event.env_id)) this.#importing.add(event.env_id)
        break
      case 'ImportAbandoned':
      case 'EnvImported':
        this.#importing.delete(event.env_id)
        this.#usedFrom(event.env_id, at)
        break
      case 'EnvDeleted':
        this.#removeEnv(event.env_id)
        break
      case 'EnvPurged': {
        const deleted = this.#deletedEnvs.get(event.env_id)
        if (deleted) deleted.purged = event.final
        break
      }
      default:
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

  #usedFrom(env_id: string, at: string | undefined): void {
    if (at === undefined || !this.#envs.has(env_id)) return
    this.#usedSince.set(env_id, Math.max(this.usedSince(env_id), Date.parse(at)))
  }

  #removeEnv(env_id: string): void {
    const env = this.#envs.get(env_id)
    if (!env) return
    const path = `${env.org_slug}/${env.name}`
    if (this.#envByPath.get(path)?.env_id === env_id) this.#envByPath.delete(path)
    this.#envs.delete(env_id)
    this.#importing.delete(env_id)
    this.#usedSince.delete(env_id)
    this.#envsOfOrg.get(env.org_id)?.delete(env_id)
    this.#addDeleted(env, false)
  }

  #addDeleted({ env_id, org_id }: Pick<DirectoryEnv, 'env_id' | 'org_id'>, purged: boolean): void {
    this.#deletedEnvs.set(env_id, { org_id, purged })
    this.#lateUsage.set(org_id, (this.#lateUsage.get(org_id) ?? new Set()).add(env_id))
  }

  #changePlan(org_id: string, plan: Plan): void {
    const org = this.#orgs.get(org_id)
    if (!org) return
    this.#orgs.set(org_id, { ...org, plan })
    for (const env of this.#envs.values()) if (env.org_id === org_id) this.#addEnv(env)
  }
}
