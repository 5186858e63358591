import { checkStoredFunctions } from '../../builds/metadata/storedFunctions.ts'
import { AppError, isRetryable, messageOf } from '../../errors.ts'
import { checkedFact } from '../../events/checkFact.ts'
import type { EventOf } from '../../events/index.ts'
import type { Plan } from '../../events/org.ts'
import type { FunctionSpec } from '../../events/project.ts'
import type { PayloadRef } from '../../events/scalars.ts'
import { functionsOf, type Place } from '../../plans/functionsOf.ts'
import { checkPlanCount } from '../../plans/quotas.ts'
import { buildKey } from '../../ports/runtime.ts'
import type { OrgDoc } from '../../projections/tenants.ts'
import type { CommandDeps } from '../deps.ts'
import { removedMeanwhile } from './importContent.ts'
import type { Header } from './importHeader.ts'
import type { ImportedFact } from './importedFacts.ts'

type Deps = Pick<CommandDeps, 'views' | 'blobs' | 'payloads'>
type OfBuild = EventOf<'BuildUploaded' | 'BuildDeployed'>

/** The hash of a build whose zip is not in the file, because it was deleted: it is that of no zip. */
const NO_ZIP = '0'.repeat(64)

/** Bytes of a list of functions that is parsed. */
const MAX_FUNCTIONS_BYTES = 16 << 20

/**
 * Adapts the facts of builds, and checks their functions, on which every node acts.
 * B1: a build without its zip gets no hash, by which it could be another tenant's, and no functions.
 * B2: functions pass the checks of an upload, in facts as in blobs, and are not more than the plan allows.
 */
export class ImportedBuilds {
  readonly #deps: Deps
  readonly #content: ReadonlySet<string>
  readonly #plan: Plan
  /** The functions of each deployed and live build of the file so far. */
  readonly #counts = new Map<string, number>()
  /** All of them, and those of the other environments of the organization. */
  #total: number

  /** `content`: the keys of builds that were in the file so far. `org`: the organization if it exists, else that of the file. */
  constructor(
    deps: Deps,
    { env_id }: Header,
    {
      content,
      org,
    }: { readonly content: ReadonlySet<string>; readonly org: Pick<OrgDoc, 'org_id' | 'plan'> },
  ) {
    this.#deps = deps
    this.#content = content
    this.#plan = org.plan
    this.#total = functionsOf(deps.views.directory, org.org_id, (project) => project.env_id !== env_id)
  }

  /**
   * Rejects with `bad_request`, with `quota_exceeded`, and with `conflict` if content of the build was removed since it was stored,
   * because a repetition does not replace a stored fact without a hash.
   */
  async adapted(fact: ImportedFact): Promise<ImportedFact> {
    const { event } = fact
    switch (event.type) {
      case 'BuildUploaded': {
        const { functions: _, functions_ref: __, ...build } = event
        const { kept, count } = await this.#checked(event)
        if (event.build_type === 'live') this.#count(event.project_id, 'live', count)
        const storage_path = buildKey({ ...build, ...kept }) // as an export of this environment must have it
        const storage_backend = this.#deps.blobs.backend
        const dropped = 'functions_ref' in kept ? 0 : (event.functions_ref?.size ?? 0)
        const size = event.size + dropped // the deletion of the build subtracts both
        return { ...fact, event: { ...build, ...kept, size, storage_path, storage_backend } }
      }
      case 'BuildDeployed': {
        const { functions: _, functions_ref: __, ...build } = event
        const { kept, count } = await this.#checked(event)
        this.#count(event.project_id, 'deployed', count)
        return { ...fact, event: { ...build, ...kept } }
      }
      case 'ProjectDeleted':
        this.#count(event.project_id, 'live', 0)
        this.#count(event.project_id, 'deployed', 0)
        return fact
      default:
        return fact
    }
  }

  async #checked(event: OfBuild) {
    const { hash, functions, functions_ref } = event
    if (!(await this.#size(buildKey(event)))) return { kept: { hash: NO_ZIP, functions: [] }, count: 0 } // B1
    const list = functions_ref ? await this.#listOf(functions_ref) : (functions ?? [])
    checkPlanCount(this.#plan, 'functionsPerBuild', list.length)
    await checkStoredFunctions(list).catch((error: unknown) => {
      throw new AppError('bad_request', `functions: ${messageOf(error)}`)
    })
    const kept = { hash, ...(functions && { functions }), ...(functions_ref && { functions_ref }) }
    return { kept, count: list.length }
  }

  #count(project_id: string, place: Place, count: number): void {
    const key = `${project_id}/${place}`
    this.#total += count - (this.#counts.get(key) ?? 0)
    this.#counts.set(key, count)
    checkPlanCount(this.#plan, 'functions', this.#total)
  }

  /** The bytes of a blob; 0 if it is not in the file. */
  async #size(key: string): Promise<number> {
    const found = await this.#deps.blobs.head(key)
    if (!found && this.#content.has(key)) throw removedMeanwhile(key)
    return found?.size ?? 0
  }

  async #listOf(ref: PayloadRef): Promise<readonly FunctionSpec[]> {
    const refuse = (reason: string) => new AppError('bad_request', `functions_ref: ${reason}`)
    const size = await this.#size(ref.key)
    if (size === 0) throw refuse(`The blob ${ref.key} is not in the file`)
    if (size > MAX_FUNCTIONS_BYTES) throw refuse(`expected at most ${MAX_FUNCTIONS_BYTES} bytes`)
    try {
      const functions = await this.#deps.payloads.loadList(ref)
      const ids = { project_id: '', build_id: '', hash: '' }
      const fact = checkedFact({ type: 'BuildDeployed', ...ids, functions })
      return fact.type === 'BuildDeployed' ? (fact.functions ?? []) : []
    } catch (error) {
      if (isRetryable(error)) throw error
      throw refuse(messageOf(error))
    }
  }
}
