import type { Keyring } from './keyring.ts'
import type { WebhookRequest } from '../ports/runtime.ts'

/** Headers that are masked wherever a request is kept (SPEC.md, Authentication, rule 10). */
const MASKED = ['authorization', 'cookie', 'proxy-authorization', 'set-cookie']

/** What stands in the place of something that is not told. */
export const MASK = '***'

const PURPOSE = 'webhook request'

type Secrets = Pick<WebhookRequest, 'original-url' | 'headers' | 'auth'>

/**
 * A webhook request as the log may hold it: the URL with its token, the masked headers, those in
 * `secretHeaders` and the auth data are ciphertext (I6). Names of headers stay, and that there was auth data.
 */
export const sealRequest = async (
  { 'original-url': url, auth, headers = {}, ...open }: WebhookRequest,
  { keyring, env_id, secretHeaders }: { keyring: Keyring; env_id: string; secretHeaders: readonly string[] },
): Promise<{ value: WebhookRequest; sealed: string }> => {
  const masked = new Set([...MASKED, ...secretHeaders])
  const secrets: Secrets = {
    ...(url !== undefined && { 'original-url': url }),
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => masked.has(name))),
    ...(auth && { auth }),
  }
  return {
    value: {
      ...open,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [name, masked.has(name) ? MASK : text]),
      ),
      ...(auth && { auth: {} }),
    },
    sealed: await keyring.seal(env_id, PURPOSE, JSON.stringify(secrets)),
  }
}

/** The request as it came. */
export const openRequest = async (
  value: WebhookRequest,
  sealed: string | undefined,
  { keyring, env_id }: { keyring: Keyring; env_id: string },
): Promise<WebhookRequest> => {
  if (sealed === undefined) return value
  const { headers, ...secrets } = JSON.parse(await keyring.open(env_id, PURPOSE, sealed)) as Secrets
  return { ...value, ...secrets, headers: { ...value.headers, ...headers } }
}
