import { clock } from '../clock.ts'
import type { Views } from '../projections/views.ts'
import type { Credential } from './credential.ts'
import { bothAllow, compilePermissions } from './permissions.ts'
import type { CredentialKind } from './tokens.ts'

/** A credential that exists and is not revoked or disabled. It may have expired. */
export interface Stored {
  /** The authentication code of its secret. */
  readonly mac: string
  readonly credential: Credential
}

/** The read models of each kind of credential, in addition to API keys and environments. */
const READ = { 'api-key': [], session: ['sessions'], 'service-key': ['serviceKeys'] } as const

type Keys = Pick<Views, 'apiKeys' | 'envs' | 'sessions' | 'serviceKeys'>

/** Resolves when the read models contain everything about credentials of this kind that is stored now. */
export const credentialsSettled = (views: Pick<Views, 'settled'>, kind: CredentialKind): Promise<void> =>
  views.settled('apiKeys', 'envs', ...READ[kind])

export const storedApiKey = async ({ apiKeys, envs }: Keys, id: string): Promise<Stored | undefined> => {
  const doc = await apiKeys.get(id)
  if (!doc?.enabled) return undefined
  const { env_id, mac } = doc
  if ((await envs.get(env_id))?.active === false) return undefined // created while its environment was deleted
  const credential: Credential = {
    kind: 'api-key',
    id,
    env_id,
    api_key_id: id,
    permissions: compilePermissions(doc.permissions),
    granted: [doc.permissions],
    expires: expiryOf(doc.expires_at),
  }
  return { mac, credential }
}

/** Milliseconds since 1970. */
const expiryOf = (time: string | null | undefined): number => (time ? Date.parse(time) : Infinity)

/** Reads a session or service key. It allows what it and its API key, `parentOf`, both allow, and ends with it. */
export const storedIssued = async <Parent extends Stored>(
  { sessions, serviceKeys }: Keys,
  { kind, id }: { kind: 'session' | 'service-key'; id: string },
  parentOf: (api_key_id: string) => Promise<Parent | undefined>,
): Promise<(Stored & { readonly parent: Parent }) | undefined> => {
  const doc = await (kind === 'session' ? sessions : serviceKeys).get(id)
  if (!doc || ('revoked_at' in doc && doc.revoked_at !== null)) return undefined
  const { api_key_id, env_id, mac, expires_at } = doc
  const parent = await parentOf(api_key_id)
  if (!parent) return undefined
  const credential: Credential = {
    kind,
    id,
    env_id,
    api_key_id,
    permissions: bothAllow(compilePermissions(doc.permissions), parent.credential.permissions),
    granted: [doc.permissions, ...parent.credential.granted],
    expires: Math.min(expiryOf(expires_at), parent.credential.expires),
    ...('revoked_at' in doc && doc.metadata !== undefined && { metadata: doc.metadata }),
  }
  return { mac, credential, parent }
}

/** Resolves with the credential as everything that is stored now leaves it; undefined if it is no longer valid. */
export const credentialNow = async (
  views: Keys & Pick<Views, 'settled'>,
  { kind, id }: { kind: CredentialKind; id: string },
): Promise<Credential | undefined> => {
  await credentialsSettled(views, kind)
  const apiKeyOf = (api_key_id: string) => storedApiKey(views, api_key_id)
  const stored = await (kind === 'api-key' ? apiKeyOf(id) : storedIssued(views, { kind, id }, apiKeyOf))
  return stored && stored.credential.expires > clock.now() ? stored.credential : undefined
}
