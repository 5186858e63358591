import type { Credential } from '../../access/credential.ts'
import { checkServiceKeyPermissions } from '../../access/permissions.ts'
import { newIssuedToken } from '../../access/tokens.ts'
import { clock } from '../../clock.ts'
import type { Permissions } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import { sealMetadata } from '../../secrets/serviceKeyMetadata.ts'
import { checkIssuing, expiryOf } from './checkIssuing.ts'
import type { Caller, CommandDeps } from '../deps.ts'

/** A hundred years, in seconds. Much longer times would need years of more than four digits. */
export const LONGEST_SERVICE_KEY_S = 3_153_600_000

/**
 * Issues a service key under an API key (SPEC.md, Service keys). `expires_in` is in seconds; without it the key never
 * expires. Resolves with its id and its token, which is not stored (I6). Rejects with `forbidden`, `bad_request`,
 * `permission_escalation` or `quota_exceeded`.
 */
export const issueServiceKey = async (
  { aggregates, keyring, quotas }: Pick<CommandDeps, 'aggregates' | 'keyring' | 'quotas'>,
  {
    issuer,
    name = '',
    description = '',
    permissions,
    metadata,
    expires_in = null,
  }: {
    issuer: Credential
    name?: string | undefined
    description?: string | undefined
    permissions: Permissions
    metadata?: unknown
    expires_in?: number | null | undefined
  },
  { cause, newId }: Caller,
): Promise<{ service_key_id: string; token: string }> => {
  checkIssuing(issuer, { permissions, metadata }, checkServiceKeyPermissions)
  const { api_key_id, env_id } = issuer
  const service_key_id = newId('service key')
  const { token, secret } = newIssuedToken('service-key', service_key_id)
  const key = {
    service_key_id,
    mac: keyring.macOf(secret),
    name,
    description,
    permissions,
    ...(metadata !== undefined && {
      metadata: await sealMetadata(keyring, { env_id, service_key_id }, metadata),
    }),
    expires_at: expires_in === null ? null : expiryOf(expires_in, LONGEST_SERVICE_KEY_S),
  }
  await aggregates.issued.handle(
    streamOf.issued(api_key_id),
    {
      type: 'CreateServiceKey',
      api_key_id,
      now: clock.iso(),
      key,
      most: quotas.countsOf(env_id).serviceKeysPerApiKey,
    },
    cause,
  )
  return { service_key_id, token }
}
