import { sameText } from '../../access/tokens.ts'
import { AppError } from '../../errors.ts'
import type { FunctionSpec } from '../../events/project.ts'
import { hasParameters, parametersIn } from '../../events/webhookPath.ts'
import type { DirectoryEnv } from '../../projections/directory.ts'
import type { Wired } from '../../projections/wiring.ts'
import { demandAllReadable } from '../projects/demandReadable.ts'
import { demandImported } from '../transfer/demandImported.ts'
import type { CommandDeps } from '../deps.ts'
import { patternOf } from './patternOf.ts'

/** The address to which a sender posts a webhook. */
export interface WebhookAddress {
  readonly method: string
  /** Without a port. A proved custom domain serves its own environment only, and nothing unless it is active. */
  readonly hostname: string
  /** `{org}/{env}/{service}/{path}/{token}`; at a custom domain `{service}/{path}/{token}`. */
  readonly path: string
}

/** An endpoint of a deployed build, with the environment and the function that it belongs to. */
export interface WebhookEndpoint {
  readonly env: DirectoryEnv
  readonly deployed: Wired
  readonly webhook: NonNullable<FunctionSpec['webhook']>
  /** The custom domain of the address; null for an address of the service. */
  readonly domain: string | null
  /** The parameters in the path of the request; absent if the path of the webhook has none. */
  readonly params?: Readonly<Record<string, string>>
}

type Deps = Pick<CommandDeps, 'views' | 'keyring'>

/**
 * Finds the endpoint of an address and checks its token (SPEC.md, Webhook routes). Rejects with `not_found` for any
 * flaw, or with `unavailable` if a build of the environment cannot be read. `onUnknown` is called before the wait for a build that was just deployed, and may throw.
 */
export const findWebhook = async (
  deps: Deps,
  address: WebhookAddress,
  onUnknown?: () => void,
): Promise<WebhookEndpoint> => {
  const known = await find(deps, address)
  if (known) return known
  onUnknown?.()
  await deps.views.settled('builds') // I2: a build that was just deployed may be new to this node
  const found = await find(deps, address)
  if (found) return found
  const env = placeOf(deps.views, address)?.env
  if (env) demandAllReadable(deps.views.directory, env.env_id) // else the sender would believe that the webhook is gone
  throw noWebhook()
}

/** The same refusal for every invalid address: the sender must not learn the reason. */
export const noWebhook = (): AppError => new AppError('not_found', 'No webhook here')

/** The environment of an address, its custom domain, and the other segments of its path. */
const placeOf = ({ directory }: Pick<Deps['views'], 'directory'>, { hostname, path }: WebhookAddress) => {
  const segments = path.split('/')
  const name = hostname.toLowerCase().replace(/\.$/, '')
  const isProved = directory.domains.proved(name) !== undefined
  const env = isProved
    ? directory.envOfDomain(name)
    : directory.envAt(segments.shift() ?? '', segments.shift() ?? '')
  return env && { env, domain: isProved ? name : null, segments }
}

const find = async ({ views, keyring }: Deps, address: WebhookAddress): Promise<WebhookEndpoint | null> => {
  const { directory } = views
  const { method } = address
  const place = placeOf(views, address)
  if (!place) return null
  const { env, domain, segments } = place
  demandImported(directory, env.env_id)
  const token = segments.pop() ?? ''
  const [service = '', ...rest] = segments
  const path = `/${rest.join('/')}`
  const expected = keyring.webhookToken(env.env_id, { method, service, path })
  const deployed = directory.webhookAt(env.env_id, method, service, path)
  const webhook = deployed?.fn.webhook
  if (sameText(token, expected) && deployed && webhook && !hasParameters(path))
    return { env, deployed, webhook, domain }
  // Each pattern has a token of its own, so it does not matter how many of them match the path.
  const patterns = directory.webhookPatterns(env.env_id, method, service)
  const candidate = await patternOf(keyring, env.env_id, patterns, token)
  const pattern = candidate?.fn.webhook
  const params = pattern && parametersIn(pattern.path, path)
  return candidate && params ? { env, deployed: candidate, webhook: pattern, domain, params } : null
}
