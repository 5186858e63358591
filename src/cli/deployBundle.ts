import type { Bundle } from '../bundle/bundle.ts'
import { inspectZip } from '../bundle/inspectZip.ts'
import type { Build, BuildFunction, DeployedBuild } from '../client/api.ts'
import type { Client } from '../client/client.ts'
import { ServiceError } from '../client/errors.ts'
import { allPages } from '../client/lists.ts'
import type { FunctionSpec } from '../events/project.ts'
import { uploadBuild } from './uploadBuild.ts'

/** A function with its triggers. */
export type BundledFunction = Pick<BuildFunction, 'fn' | 'on_event' | 'schedule' | 'webhook' | 'mcp'>

/** The outcome of a deployment. */
export interface DeployedBundle {
  readonly build_id: string
  readonly project: string
  readonly hash: string
  /** False if the project had a build with the same content. */
  readonly uploaded: boolean
  /** False if this build was deployed already. */
  readonly deployed: boolean
  readonly functions: readonly BundledFunction[]
  readonly changes: DeployedBuild['changes']
  readonly warnings: readonly string[]
}

interface Deployment {
  readonly project: string
  readonly bundle: Pick<Bundle, 'zip' | 'sha256'>
  /** Called before the deployment takes the last handlers of the project away. A rejection prevents it. */
  readonly confirmLoss?: (() => Promise<void>) | undefined
  readonly onProgress?: ((sent: number, total: number) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

const NO_CHANGES = { added: [], removed: [], changed: [] } as const

/**
 * Deploys a bundle. The project is created if it is missing, and the zip is uploaded only if the project has no build with
 * its content. Rejects with a `ServiceError`.
 */
export const deployBundle = async (
  client: Pick<Client, 'open' | 'request'>,
  { project, bundle, confirmLoss, onProgress, signal }: Deployment,
): Promise<DeployedBundle> => {
  const { zip, sha256: hash } = bundle
  const given = signal ? { signal } : {}
  const known = await ifFound(releaseWith(client, project, hash, given))
  if (known === null) await createProject(client, project, given)
  const upload = known ? null : await uploadBuild(client, { project, zip, sha256: hash, onProgress, signal })
  const { functions: found, warnings } = upload ?? (await inspectZip(zip))
  const functions = found.map(toFunction)
  const build_id = upload?.build_id ?? known?.build_id ?? ''
  const outcome = { build_id, project, hash, uploaded: upload !== null, functions }
  if (known?.deployed) return { ...outcome, deployed: false, changes: NO_CHANGES, warnings }
  if (!functions.some(hasTrigger) && (await hasHandlers(client, project, given))) await confirmLoss?.()
  const { changes, warnings: further } = await client.request(
    'POST /v1/projects/{project}/builds/{build_id}/deploy',
    { path: { project, build_id }, ...given },
  )
  return { ...outcome, deployed: true, changes, warnings: [...warnings, ...further] }
}

interface Given {
  readonly signal?: AbortSignal
}

/** The builds of a project, or those with a hash, newest first. Rejects with `not_found` if there is no such project. */
export const buildsOf = (
  client: Pick<Client, 'request'>,
  project: string,
  given: Given,
  hash?: string,
): AsyncIterable<Build> =>
  allPages(
    (page) => {
      const query = { ...page, ...(hash !== undefined && { hash }) }
      return client.request('GET /v1/projects/{project}/builds', { path: { project }, query, ...given })
    },
    ({ build_id }) => build_id,
  )

/** The newest release of a project with this content, if it has one. Rejects as `buildsOf` does. */
export const releaseWith = async (
  client: Pick<Client, 'request'>,
  project: string,
  hash: string,
  given: Given,
): Promise<Build | undefined> => {
  for await (const build of buildsOf(client, project, given, hash))
    if (build.build_type === 'release') return build
  return undefined
}

/** Resolves with null if the service has no such thing. */
export const ifFound = async <Found>(found: Promise<Found>): Promise<Found | null> => {
  try {
    return await found
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return null
    throw error
  }
}

/** Creates a project that may exist already. */
export const createProject = async (
  client: Pick<Client, 'request'>,
  name: string,
  given: Given,
): Promise<void> => {
  try {
    await client.request('POST /v1/projects', { body: { name }, ...given })
  } catch (error) {
    // Another deployment may create it at the same time.
    if (!(error instanceof ServiceError && error.code === 'project_exists')) throw error
  }
}

const TRIGGERS = [
  'GET /v1/projects/{project}/event-handlers',
  'GET /v1/projects/{project}/schedules',
  'GET /v1/projects/{project}/webhooks',
] as const

/** Whether events, schedules or webhooks start functions of the deployed build. */
const hasHandlers = async (
  client: Pick<Client, 'request'>,
  project: string,
  given: Given,
): Promise<boolean> => {
  for (const list of TRIGGERS) {
    const { pagination } = await client.request(list, { path: { project }, query: { limit: 1 }, ...given })
    if (pagination.total > 0) return true
  }
  return false
}

export const hasTrigger = ({ on_event, schedule, webhook }: BundledFunction): boolean =>
  on_event !== undefined || schedule !== undefined || webhook !== undefined

/** As the service presents it. */
export const toFunction = ({
  ns,
  var: name,
  on_event,
  schedule,
  webhook,
  mcp,
}: FunctionSpec | BuildFunction): BundledFunction => ({
  fn: `${ns}/${name}`,
  ...(on_event !== undefined && { on_event }),
  ...(schedule && { schedule }),
  ...(webhook && {
    webhook: {
      service: webhook.service,
      path: webhook.path,
      method: webhook.method,
      auth: webhook.auth,
    },
  }),
  ...(mcp && { mcp: { service: mcp.service, description: mcp.description } }),
})
