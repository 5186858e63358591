import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { AppError } from '../errors.ts'
import { derivedId, newId } from '../ids.ts'
import { newApiToken, newSecret } from '../access/tokens.ts'

export interface Secrets {
  readonly masterKey: Buffer
  readonly apiKey: string
  readonly operatorToken: string
  /** The source of new secrets: a file or `SVC_MASTER_KEY`; null when the secrets existed. */
  readonly made: string | null
}

/**
 * Reads the secrets of this installation: from the configuration, else from `secrets.json`, else new ones. With a
 * configured master key they derive from it, so that all nodes of a cluster have the same secrets.
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
    // reported below: a broken file must not be replaced, because it may contain the only master key
  }
  throw new AppError(
    'unavailable',
    `${file} cannot be read as secrets: repair it, or restore it from a backup`,
  )
}
