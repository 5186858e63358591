import { lacking } from '../../access/permissions.ts'
import type { CredentialKind } from '../../access/tokens.ts'
import { unsealMetadata } from '../../secrets/serviceKeyMetadata.ts'
import type { CommandDeps } from '../deps.ts'
import { noWebhook, type WebhookEndpoint } from './findWebhook.ts'

/** The credential of a sender. */
export interface Sender {
  readonly kind: CredentialKind
  readonly id: string
  readonly env_id: string
  readonly permissions: { allows(type: string, action: string, path: string): boolean }
  /** Sealed; of a service key. */
  readonly metadata?: string | undefined
}

/**
 * Checks that a credential may execute the webhook's service in its environment. Resolves with the fields that the
 * handler receives (SPEC.md, Authentication, rule 9). Rejects with `not_found` (I7) or `forbidden`.
 */
export const authorizeWebhook = async (
  { keyring }: Pick<CommandDeps, 'keyring'>,
  { env: { env_id }, webhook: { service } }: WebhookEndpoint,
  { kind, id, metadata, ...credential }: Sender,
): Promise<Readonly<Record<string, unknown>>> => {
  if (credential.env_id !== env_id) throw noWebhook()
  if (!credential.permissions.allows('webhook', 'execute', service))
    throw lacking('webhook', 'execute', service)
  if (kind !== 'service-key') return { type: kind }
  return { type: kind, metadata: await unsealMetadata(keyring, { env_id, service_key_id: id }, metadata) }
}
