import { CONTEXT_KEY_RULE, isContextKey } from '../../events/contextKey.ts'
import { type FunctionSpec, VERIFY_PRESETS } from '../../events/project.ts'
import { mistakeInParameters } from '../../events/webhookPath.ts'
import { parseCorsOrigins } from '../../ports/corsOrigins.ts'
import { anyTextOf, BadMetadata, expected, fieldsOf, shown, textOf } from './metadataFields.ts'
import { serviceNameOf } from './serviceName.ts'

const METHODS = ['GET', 'PUT', 'PATCH', 'DELETE', 'POST']
/** Without `%`: requested paths are compared after their decoding. */
const PATH = /^\/[A-Za-z0-9._~!$&'()*+,;=:@/-]*$/

const MAX_ORIGINS = 20

type WebhookSpec = NonNullable<FunctionSpec['webhook']>

/** Returns the endpoint of a function with its defaults. Throws `BadMetadata`. */
export const webhookOf = (
  value: unknown,
  { ns, var: name }: Pick<FunctionSpec, 'ns' | 'var'>,
  where: string,
): WebhookSpec => {
  const given = fieldsOf(value, `${where}Expected webhook to be an object`)
  const service = serviceNameOf(given.service, `${where}webhook.service`)
  const method = textOf(given.method ?? 'POST', `${where}webhook.method`).toUpperCase()
  if (!METHODS.includes(method)) {
    throw new BadMetadata(
      `${where}Expected webhook.method to be one of ${METHODS.join(', ')}, got ${shown(method)}`,
    )
  }
  const auth = given.auth ?? 'none'
  if (auth !== 'none' && auth !== 'required') {
    throw new BadMetadata(`${where}Expected webhook.auth to be "none" or "required", got ${shown(auth)}`)
  }
  return {
    service,
    path: pathOf(given.path, where),
    method,
    name: textOf(given.name ?? `${ns}_${name}`, `${where}webhook.name`),
    description:
      given.description === undefined ? '' : anyTextOf(given.description, `${where}webhook.description`),
    auth,
    ...(given.verify === undefined || given.verify === null ? {} : { verify: verifyOf(given.verify, where) }),
    ...(given.cors === undefined || given.cors === null ? {} : { cors: corsOf(given.cors, where) }),
    ...(given.agent === undefined ? {} : { agent: textOf(given.agent, `${where}webhook.agent`) }),
  }
}

const pathOf = (value: unknown, where: string): string => {
  const path = textOf(value, `${where}webhook.path`).replace(/^(?!\/)/, '/')
  if (!PATH.test(path) || path.length > 512 || /\/\.{0,2}(?:\/|$)/.test(path.replace(/^\/$/, '/x')))
    throw new BadMetadata(
      `${where}Expected webhook.path to be a URL path such as "/paid", got ${shown(path)}`,
    )
  const mistake = mistakeInParameters(path)
  if (mistake) throw new BadMetadata(expected(`${where}webhook.path`, mistake, path))
  return path
}

/** The origins as they are written; `*` alone is every page. */
const corsOf = (value: unknown, where: string): string[] => {
  if (value === '*') return ['*']
  const given: readonly unknown[] = Array.isArray(value) ? value : []
  const origins = given.filter((each) => typeof each === 'string' && parseCorsOrigins(each) !== undefined)
  if (origins.length > 0 && origins.length === given.length && origins.length <= MAX_ORIGINS)
    return origins as string[]
  throw new BadMetadata(
    `${where}Expected webhook.cors to be "*", or a list of 1 to ${MAX_ORIGINS} origins such as "https://shop.example" or "http://localhost:*", got ${shown(value)}`,
  )
}

/** `{ stripe: 'KEY' }`: the preset, and the context variable that contains its secret. */
const verifyOf = (value: unknown, where: string): NonNullable<WebhookSpec['verify']> => {
  const expectation = `Expected webhook.verify to be an object with one of ${VERIFY_PRESETS.join(', ')}`
  const entries = Object.entries(fieldsOf(value, `${where}${expectation}`))
  const [name = '', key] = entries[0] ?? []
  const written = name === 'standardWebhooks' ? 'standard-webhooks' : name
  const preset = VERIFY_PRESETS.find((each) => each === written)
  if (!preset || entries.length > 1)
    throw new BadMetadata(`${where}${expectation}, got ${shown(entries.map(([each]) => each))}`)
  if (!isContextKey(key))
    throw new BadMetadata(
      `${where}Expected webhook.verify.${name} to be the key of a context variable with the secret: ${CONTEXT_KEY_RULE}, got ${shown(key)}`,
    )
  return { preset, context: key }
}
