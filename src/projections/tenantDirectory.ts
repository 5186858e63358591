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
  readonly envs: readonly { env_id: string; org_id: string; name: string; active?: boolean }[]
}

export const TENANT_TYPES: readonly EventType[] = [
  'OrgCreated',
  'OrgChanged',
  'OrgDeleted',
  'EnvCreated',
  'EnvDeleted',
]

/** The part of the directory with organizations and environments. Folding a fact twice changes nothing. */
export class TenantDirectory {
  readonly #orgs = new Map<string, { slug: string; plan: Plan }>()
  readonly #envs = new Map<string, DirectoryEnv>()
  readonly #envByPath = new Map<string, DirectoryEnv>()
  readonly #envsOfOrg = new Map<string, Set<string>>()
  /** The organization of each deleted environment, until the organization is deleted. */
  readonly #deletedEnvs = new Map<string, string>()

  seed({ orgs, envs }: TenantSeed): void {
    for (const org of orgs) this.#orgs.set(org.org_id, org)
    for (const env of envs)
      if (env.active === false) this.#deletedEnvs.set(env.env_id, env.org_id)
      else this.#addEnv(env)
  }

  env(env_id: string): DirectoryEnv | undefined {
    return this.#envs.get(env_id)
  }

  envAt(orgSlug: string, envName: string): DirectoryEnv | undefined {
    return this.#envByPath.get(`${orgSlug}/${envName}`)
  }

  envsOf(org_id: string): Iterable<string> {
    return this.#envsOfOrg.get(org_id) ?? []
  }

  *deletedEnvsOf(org_id: string): Generator<string> {
    for (const [env_id, of] of this.#deletedEnvs) if (of === org_id) yield env_id
  }

  /** Whether the environment was deleted and its organization was not. */
  isDeleted(env_id: string): boolean {
    return this.#deletedEnvs.has(env_id)
  }

  apply({ event }: Recorded): void {
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

  #removeEnv(env_id: string): void {
    const env = this.#envs.get(env_id)
    if (!env) return
    const path = `${env.org_slug}/${env.name}`
    if (this.#envByPath.get(path)?.env_id === env_id) this.#envByPath.delete(path)
    this.#envs.delete(env_id)
    this.#envsOfOrg.get(env.org_id)?.delete(env_id)
    this.#deletedEnvs.set(env_id, env.org_id)
  }

  #changePlan(org_id: string, plan: Plan): void {
    const org = this.#orgs.get(org_id)
    if (!org) return
    this.#orgs.set(org_id, { ...org, plan })
    for (const env of this.#envs.values()) if (env.org_id === org_id) this.#addEnv(env)
  }
}
