import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Commands } from './commands/index.ts'
import type { Config } from './config.ts'
import { AppError } from './errors.ts'
import { streamOf } from './events/streams.ts'
import { derivedId, newId } from './ids.ts'
import { type Keyring, newApiToken, newSecret, parseApiToken } from './secrets.ts'

export interface Secrets {
  readonly masterKey: Buffer
  readonly apiKey: string
  readonly operatorToken: string
  /** True when they were made just now: the one time they are shown. */
  readonly made: boolean
}

/** The secrets of this installation: from the configuration, else from `secrets.json`, else made now. */
export const openSecrets = (config: Config): Secrets => {
  const file = join(config.dataDir, 'secrets.json')
  const stored = existsSync(file) ? readStored(file) : null
  const made = stored ?? {
    master_key: randomBytes(32).toString('base64'),
    api_key: newApiToken(newId()),
    operator_token: newSecret('svc_operator_'),
  }
  if (!stored) {
    writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`, { mode: 0o600 })
    chmodSync(file, 0o600)
  }
  return {
    masterKey: config.masterKey ?? Buffer.from(made.master_key, 'base64'),
    apiKey: config.apiKey ?? made.api_key,
    operatorToken: config.operatorToken ?? made.operator_token,
    made: !stored,
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

/** Makes the first organization, environment and API key. Every node may: ids are derived, so it happens once. */
export const ensureFirstTenant = async (
  commands: Commands,
  { apiKey, keyring }: { apiKey: string; keyring: Keyring },
): Promise<void> => {
  const token = parseApiToken(apiKey)
  if (!token) throw new AppError('bad_request', 'SVC_API_KEY: expected svc_<uuid>_<secret>')
  const cause = { correlation_id: LOCAL_ORG }
  await commands.tenants.handle(
    streamOf.org(LOCAL_ORG),
    {
      type: 'Create',
      fact: { type: 'OrgCreated', org_id: LOCAL_ORG, slug: 'local', name: 'Local', plan: 'self_host' },
    },
    cause,
  )
  await commands.tenants.handle(
    streamOf.env(LOCAL_ENV),
    { type: 'Create', fact: { type: 'EnvCreated', env_id: LOCAL_ENV, org_id: LOCAL_ORG, name: 'dev' } },
    { ...cause, env_id: LOCAL_ENV },
  )
  const { api_key_id, secret } = token
  await commands.tenants.handle(
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
}
