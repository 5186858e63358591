import { clock } from '../../clock.ts'
import type { DeployedBuild } from '../../domain/project.ts'
import { textOfWebhook, type WebhookAddress, type WebhookHolder, webhooksIn } from '../../domain/webhook.ts'
import { AppError, isAppError, isRetryable, messageOf } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import type { FunctionSpec } from '../../events/project.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { hasNoResult } from '../projects/reserveName.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'views' | 'payloads'>

/** Attempts to reserve an address while other deployments reserve it first; then the caller must retry. */
const MAX_RACES = 20

interface Functions {
  readonly functions?: readonly FunctionSpec[] | undefined
  readonly functions_ref?: EventOf<'BuildUploaded'>['functions_ref']
}

/** The functions of a build. A long list is loaded from the blobs. Rejects with `unavailable` if it cannot be read. */
export const functionsOf = async (
  { payloads }: Pick<CommandDeps, 'payloads'>,
  { functions, functions_ref: ref }: Functions,
): Promise<readonly FunctionSpec[]> => {
  if (functions || !ref) return functions ?? []
  try {
    return (await payloads.loadList(ref)) as FunctionSpec[]
  } catch (error) {
    if (isRetryable(error)) throw error
    const message = `The functions of the build cannot be read: ${messageOf(error)}. Upload the build again with a new id`
    throw new AppError('unavailable', message, { cause: error })
  }
}

/** The webhook addresses of a build. */
export const webhooksOf = async (
  deps: Pick<CommandDeps, 'payloads'>,
  build: Functions,
): Promise<WebhookAddress[]> => webhooksIn(await functionsOf(deps, build))

/**
 * Reserves the webhook addresses of a build for the deployment that begins after `fence`. Only one project of the
 * environment can serve an address (decision 0019). Rejects with `conflict` that names the webhook and its project.
 */
export const reserveWebhooks = async (
  deps: Deps,
  { webhooks, project_id, fence }: { webhooks: readonly WebhookAddress[]; project_id: string; fence: number },
  cause: EnvCause,
): Promise<void> => {
  for (const webhook of webhooks) refuseServed(deps, webhook, project_id, cause)
  // In sorted order, one at a time: if two deployments want the same addresses, one of them gets all.
  const sorted = webhooks
    .map((webhook) => ({ webhook, text: textOfWebhook(webhook) }))
    .sort((a, b) => (a.text < b.text ? -1 : 1))
  const servedBy = servedLists(deps)
  for (const [i, { webhook }] of sorted.entries()) {
    try {
      await reserve(deps, webhook, { project_id, fence, servedBy }, cause)
    } catch (error) {
      if (i > 0 && isAppError(error, 'conflict')) await abandon(deps, { project_id, fence }, cause)
      throw error
    }
  }
}

/** Builds that version 0.1.0 deployed have no reservations: the directory knows their webhooks. */
const refuseServed = (
  { views }: Deps,
  webhook: WebhookAddress,
  project_id: string,
  { env_id }: EnvCause,
): void => {
  const { method, service, path } = webhook
  const served = views.directory.webhookAt(env_id, method, service, path)
  if (served && served.project.project_id !== project_id)
    throw taken(webhook, `project "${served.project.name}" serves it`)
}

const reserve = async (
  deps: Deps,
  webhook: WebhookAddress,
  { project_id, fence, servedBy }: { project_id: string; fence: number; servedBy: ServedBy },
  cause: EnvCause,
): Promise<void> => {
  const { webhooks } = deps.aggregates
  const stream = streamOf.webhook(cause.env_id, webhook)
  for (let races = 0; ; races++) {
    const holder = await webhooks.read(stream, (reservation) => reservation.holder)
    const instead = holder && holder.project_id !== project_id ? holder : undefined
    const use = instead && (await useOf(deps, webhook, { ...instead, servedBy }, cause))
    if (use) throw taken(webhook, use)
    const by = { project_id, fence, reserved_at: clock.iso() }
    try {
      await webhooks.handle(stream, { type: 'ReserveWebhook', webhook, by, instead }, cause)
      return
    } catch (error) {
      if (!isAppError(error, 'conflict') || races === MAX_RACES) throw error
    }
  }
}

/** The addresses that the deployed build of a project serves, as text. */
type ServedBy = (project_id: string, build: DeployedBuild) => Promise<ReadonlySet<string>>

/** Reads the list of each build once: a project may have reserved each of 10,000 addresses. */
const servedLists = (deps: Deps): ServedBy => {
  const known = new Map<string, ReadonlySet<string>>()
  return async (project_id, build) => {
    const key = `${project_id}/${build.build_id}` // clients may choose the ids of builds
    const before = known.get(key)
    if (before) return before
    const served = new Set((build.webhooks ?? (await webhooksOf(deps, build))).map(textOfWebhook))
    known.set(key, served)
    return served
  }
}

/** Describes the use of an address by the project that reserved it; undefined when the reservation is void. */
const useOf = async (
  deps: Deps,
  webhook: WebhookAddress,
  { project_id, fence, reserved_at, servedBy }: WebhookHolder & { readonly servedBy: ServedBy },
  cause: EnvCause,
): Promise<string | undefined> => {
  for (;;) {
    const project = await deps.aggregates.projects.read(streamOf.project(project_id), (state) => {
      if (state.status !== 'active') return undefined
      const { name, deployed } = state
      return { name, deployed, fence: state.fence }
    })
    if (!project) return undefined
    const { name, deployed } = project
    const served = deployed && (await servedBy(project_id, deployed))
    if (served?.has(textOfWebhook(webhook))) return `project "${name}" serves it`
    if (fence < project.fence) return undefined
    if (!hasNoResult(Date.parse(reserved_at))) return `project "${name}" is being deployed with it`
    await abandon(deps, { project_id, fence }, cause) // its node died, or its deployment will now fail as too slow
  }
}

/** Voids the reservations that a project made for a deployment, unless the deployment took effect. */
const abandon = async (
  { aggregates }: Deps,
  { project_id, fence }: { project_id: string; fence: number },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.projects.handle(
    streamOf.project(project_id),
    { type: 'AbandonDeployment', project_id, fence },
    cause,
  )
}

const taken = (webhook: WebhookAddress, use: string): AppError =>
  new AppError('conflict', `webhook ${textOfWebhook(webhook)}: ${use}`)
