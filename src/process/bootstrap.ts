import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Aggregates } from '../domain/aggregates.ts'
import type { Config } from './config.ts'
import { AppError } from '../errors.ts'
import { streamOf } from '../events/streams.ts'
import { derivedId, newId } from '../ids.ts'
import { newApiToken, newSecret, parseApiToken } from '../access/tokens.ts'
import { type Keyring } from '../secrets/keyring.ts'

export interface Secrets {
  readonly masterKey: Buffer
  readonly apiKey: string
  readonly operatorToken: string
  /** The file they were written to when they were made just now: the one time they are shown. */
  readonly made: string | null
}

/**
 * The secrets of this installation: from the configuration, else from `secrets.json`, else made now. With a master key
 * from the configuration they are derived from it, so that every node of a cluster has the same.
 */
export const openSecrets = (config: Config): Secrets => {
  const file = join(config.dataDir, 'secrets.json')
  const stored = existsSync(file) ? readStored(file) : null
  const kept = stored ?? (config.masterKey ? derived(config.masterKey) : make(file))
  return {
    masterKey: config.masterKey ?? Buffer.from(kept.master_key, 'base64'),
    apiKey: config.apiKey ?? kept.api_key,
    operatorToken: config.operatorToken ?? kept.operator_token,
    made: stored || config.masterKey ? null : file,
  }
}

const make = (file: string): Stored => {
  const made = {
    master_key: randomBytes(32).toString('base64'),
    api_key: newApiToken(newId()),
    operator_token: newSecret('svc_operator_'),
  }
  writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`, { mode: 0o600 })
  chmodSync(file, 0o600)
  return made
}

const derived = (masterKey: Buffer): Stored => {
  const bytes = (purpose: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `svc ${purpose}`, 32))
  return {
    master_key: masterKey.toString('base64'),
    api_key: newApiToken(
      derivedId('first api key', bytes('first api key id').toString('hex')),
      bytes('first api key'),
    ),
    operator_token: newSecret('svc_operator_', bytes('operator token')),
  }
}

interface Stored {
  readonly master_key: string
  readonly api_key: string
  readonly operator_token: string
}

const readStored = (file: string): Stored => {
  try {
    const stored = JSON.parse(readFileSync(file, 'utf8')) as Partial<Stored>
    if (stored.master_key && stored.api_key && stored.operator_token) return stored as Stored
  } catch {
    // told below: a broken file must not be replaced, it may hold the only master key
  }
  throw new AppError('unavailable', `${file} cannot be read as secrets: mend it, or restore it from a backup`)
}

const LOCAL_ORG = derivedId('org', 'local')
const LOCAL_ENV = derivedId('env', 'local', 'dev')

/**
 * Makes the first organization, environment and API key. Every node may: ids are derived, so it happens once.
 * Resolves with whether the key was made just now.
 */
export const ensureFirstTenant = async (
  aggregates: Aggregates,
  { apiKey, keyring }: { apiKey: string; keyring: Keyring },
): Promise<boolean> => {
  const token = parseApiToken(apiKey)
  if (!token) throw new AppError('bad_request', 'SVC_API_KEY: expected svc_<uuid>_<secret>')
  const cause = { correlation_id: LOCAL_ORG }
  await aggregates.tenants.handle(
    streamOf.org(LOCAL_ORG),
    {
      type: 'Create',
      fact: { type: 'OrgCreated', org_id: LOCAL_ORG, slug: 'local', name: 'Local', plan: 'self_host' },
    },
    cause,
  )
  await aggregates.tenants.handle(
    streamOf.env(LOCAL_ENV),
    { type: 'Create', fact: { type: 'EnvCreated', env_id: LOCAL_ENV, org_id: LOCAL_ORG, name: 'dev' } },
    { ...cause, env_id: LOCAL_ENV },
  )
  const { api_key_id, secret } = token
  const { events } = await aggregates.tenants.handle(
    streamOf.key(api_key_id),
    {
      type: 'Create',
      fact: {
        type: 'ApiKeyCreated',
        api_key_id,
        env_id: LOCAL_ENV,
        name: 'first',
        mac: keyring.macOf(secret),
        permissions: { '*:*': ['*'] },
      },
    },
    { ...cause, env_id: LOCAL_ENV },
  )
  return events.length > 0
}
