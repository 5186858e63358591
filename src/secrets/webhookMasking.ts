import { MASK } from '../events/mask.ts'
import type { Keyring } from './keyring.ts'
import type { WebhookRequest } from '../ports/runtime.ts'

/** Headers that are masked in every stored request (SPEC.md, Authentication, rule 10). */
const MASKED = ['authorization', 'cookie', 'proxy-authorization', 'set-cookie']

const PURPOSE = 'webhook request'

type Secrets = Pick<WebhookRequest, 'original-url' | 'headers' | 'auth'>

/**
 * Seals the secrets of a webhook request for the log (I6): the URL with its token, the masked headers, `secretHeaders`
 * and the auth data. Header names and the presence of auth data remain readable.
 */
export const sealRequest = async (
  { 'original-url': url, auth, headers = {}, ...clear }: WebhookRequest,
  { keyring, env_id, secretHeaders }: { keyring: Keyring; env_id: string; secretHeaders: readonly string[] },
): Promise<{ value: WebhookRequest; sealed: string }> => {
  const masked = new Set([...MASKED, ...secretHeaders])
  const secrets: Secrets = {
    ...(url !== undefined && { 'original-url': url }),
    headers: Object.fromEntries(
      Object.entries(headers).filter(([name, text]) => masked.has(name) && text !== MASK),
    ),
    ...(auth && { auth }),
  }
  return {
    value: {
      ...clear,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [name, masked.has(name) ? MASK : text]),
      ),
      ...(auth && { auth: {} }),
    },
    sealed: await keyring.seal(env_id, PURPOSE, JSON.stringify(secrets)),
  }
}

/** Restores the request as it was received, without the credentials that are withheld from the function. */
export const unsealRequest = async (
  value: WebhookRequest,
  sealed: string | undefined,
  { keyring, env_id }: { keyring: Keyring; env_id: string },
): Promise<WebhookRequest> => {
  if (sealed === undefined) return value
  const { headers, ...secrets } = JSON.parse(await keyring.unseal(env_id, PURPOSE, sealed)) as Secrets
  const restored = Object.entries({ ...value.headers, ...headers })
  return {
    ...value,
    ...secrets,
    headers: Object.fromEntries(restored.filter((header) => !isWithheld(header))),
  }
}

/** A masked header without a sealed value: the log shows that it was sent, and the function does not get it. */
const isWithheld = ([name, text]: readonly [string, string]): boolean =>
  text === MASK && MASKED.includes(name)
