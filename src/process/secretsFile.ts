import {
  chmodSync,
  existsSync,
  lstatSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { hkdfSync, randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { Config } from './config.ts'
import { parseKey } from './variables/values.ts'
import { adviceFor } from '../disk/fullDisk.ts'
import { syncFolderNow } from '../disk/sync.ts'
import { AppError, isAppError, messageOf, reasonOf, unreadable } from '../errors.ts'
import { derivedId, newId } from '../ids.ts'
import { newApiToken, newSecret, parseApiToken } from '../access/tokens.ts'

/**
 * Where a token is from. Only a `new` or `derived` one is ever printed: the operator chose the one of the environment,
 * and was shown the stored one.
 */
export type Origin = 'environment' | 'stored' | 'new' | 'derived'

export interface Secrets {
  readonly masterKey: Buffer
  /** The key that `masterKey` replaces, until nothing is encrypted with it; null when there is none. */
  readonly previousMasterKey: Buffer | null
  readonly apiKey: string
  readonly operatorToken: string
  /** Also valid: the one derived from the previous master key. */
  readonly previousOperatorToken: string | null
  readonly origins: { readonly apiKey: Origin; readonly operatorToken: Origin }
  /** Stores the master key; null when `SVC_MASTER_KEY` provides it. */
  readonly file: SecretsFile | null
}

type SecretsConfig = Pick<Config, 'dataDir' | 'masterKey' | 'previousMasterKey' | 'apiKey' | 'operatorToken'>

interface Stored {
  readonly master_key: string
  readonly previous_master_key?: string | undefined
  /** Absent as long as the environment provides it. */
  readonly api_key?: string | undefined
  readonly operator_token?: string | undefined
}

type OnWarn = (message: string) => void

export const SECRETS_FILE = 'secrets.json'

const secretsFileIn = (dataDir: string): string => join(dataDir, SECRETS_FILE)

/**
 * Reads the secrets of this installation: from the configuration, else from `secrets.json`, else new ones. With a
 * configured master key they derive from it, so that all nodes of a cluster have the same secrets. A file is created
 * only for a new installation, and never replaced: it may contain the only master key.
 */
export const openSecrets = (config: SecretsConfig, onWarn: OnWarn = () => {}): Secrets => {
  const path = secretsFileIn(config.dataDir)
  const stored = readStored(path, onWarn)
  const { masterKey } = config
  if (masterKey !== null) {
    const { api_key, operator_token } = derivedFrom(masterKey)
    const apiKey = chosen(config.apiKey, stored?.api_key, 'derived', () => api_key)
    const operator = chosen(config.operatorToken, stored?.operator_token, 'derived', () => operator_token)
    const previous = config.previousMasterKey
    const isDerived = operator.origin === 'derived' && previous !== null
    return {
      masterKey,
      previousMasterKey: previous,
      apiKey: apiKey.token,
      operatorToken: operator.token,
      previousOperatorToken: isDerived ? derivedFrom(previous).operator_token : null,
      origins: { apiKey: apiKey.origin, operatorToken: operator.origin },
      file: null,
    }
  }
  if (stored === null) checkNoData(config.dataDir, path)
  const apiKey = chosen(config.apiKey, stored?.api_key, 'new', () => newApiToken(newId()))
  const operator = chosen(config.operatorToken, stored?.operator_token, 'new', () =>
    newSecret('svc_operator_'),
  )
  const kept: Stored = {
    master_key: randomBytes(32).toString('base64'),
    ...stored,
    ...(apiKey.origin === 'new' && { api_key: apiKey.token }),
    ...(operator.origin === 'new' && { operator_token: operator.token }),
  }
  if (stored === null || apiKey.origin === 'new' || operator.origin === 'new') writeStored(path, kept)
  return {
    masterKey: Buffer.from(kept.master_key, 'base64'),
    previousMasterKey:
      kept.previous_master_key === undefined ? null : Buffer.from(kept.previous_master_key, 'base64'),
    apiKey: apiKey.token,
    operatorToken: operator.token,
    previousOperatorToken: null,
    origins: { apiKey: apiKey.origin, operatorToken: operator.origin },
    file: new SecretsFile(path),
  }
}

/** The operator token of an installation on this machine, without `SVC_OPERATOR_TOKEN`; null when there is none. */
export const operatorTokenIn = (dataDir: string | null, masterKey: Buffer | null): string | null =>
  storedIn(dataDir)?.operator_token ?? (masterKey && derivedFrom(masterKey).operator_token)

/** The first API key of an installation on this machine, without `SVC_API_KEY`; null when there is none. */
export const apiKeyIn = (dataDir: string | null, masterKey: Buffer | null): string | null =>
  storedIn(dataDir)?.api_key ?? (masterKey && derivedFrom(masterKey).api_key)

const storedIn = (dataDir: string | null) => (dataDir === null ? null : parseFile(secretsFileIn(dataDir)))

/** Throws if `secrets.json` is damaged, or is missing beside the data that needs it. Changes nothing. */
export const checkStoredSecrets = (dataDir: string): void => {
  const path = secretsFileIn(dataDir)
  if (parseFile(path) === null) checkNoData(dataDir, path)
}

/** The master keys in a `secrets.json`, the current one first; none if there is no such file. Changes nothing. */
export const masterKeysIn = (path: string): readonly Buffer[] => {
  const stored = parseFile(path)
  const keys = stored ? [stored.master_key, stored.previous_master_key] : []
  return keys.flatMap((key) => (key === undefined ? [] : [Buffer.from(key, 'base64')]))
}

/** The `secrets.json` of this installation. */
export class SecretsFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /**
   * Makes `next` the master key and keeps the current one beside it, which is the other one in the file if the log has refused
   * the first. Durable when it returns.
   */
  replaceMasterKey(next: Uint8Array, isCurrent: (key: Uint8Array) => boolean): void {
    const { previous_master_key, ...stored } = this.#read()
    const isOther = previous_master_key !== undefined && isCurrent(Buffer.from(previous_master_key, 'base64'))
    writeStored(this.path, {
      ...stored,
      master_key: Buffer.from(next).toString('base64'),
      previous_master_key: isOther ? previous_master_key : stored.master_key,
    })
  }

  /**
   * Removes the former master key if it is retired: it may be that of a rotation which has begun meanwhile. Durable when
   * it returns.
   */
  dropPreviousMasterKey(isRetired: (key: Uint8Array) => boolean): void {
    const { previous_master_key, ...stored } = this.#read()
    if (previous_master_key === undefined) return
    if (isRetired(Buffer.from(previous_master_key, 'base64'))) writeStored(this.path, stored)
  }

  #read(): Stored {
    const stored = readStored(this.path)
    if (stored === null) throw new AppError('unavailable', `${this.path} is missing: ${RESTORE}`)
    return stored
  }
}

const chosen = (
  configured: string | null,
  stored: string | undefined,
  origin: 'new' | 'derived',
  make: () => string,
): { readonly token: string; readonly origin: Origin } => {
  if (configured !== null) return { token: configured, origin: 'environment' }
  return stored === undefined ? { token: make(), origin } : { token: stored, origin: 'stored' }
}

const derivedFrom = (masterKey: Buffer): { readonly api_key: string; readonly operator_token: string } => {
  const bytes = (purpose: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `svc ${purpose}`, 32))
  return {
    api_key: newApiToken(
      derivedId('first api key', bytes('first api key id').toString('hex')),
      bytes('first api key'),
    ),
    operator_token: newSecret('svc_operator_', bytes('operator token')),
  }
}

const RESTORE =
  'restore it from the backup of this data directory, or set SVC_MASTER_KEY to the master key that it contained'

/** The files of the embedded engines. Beside it, a new master key would open nothing. */
const DATA = ['log.db', 'blobs']

const checkNoData = (dataDir: string, path: string): void => {
  const found = DATA.find((name) => existsSync(join(dataDir, name)))
  if (found !== undefined)
    throw new AppError(
      'unavailable',
      `${path} is missing, but ${join(dataDir, found)} was written with its master key: ${RESTORE}`,
    )
}

/** Access for the group, and for all other users. */
const OTHERS = 0o077

const readStored = (path: string, onWarn: OnWarn = () => {}): Stored | null =>
  reading(path, () => {
    const mode = modeOf(path) ?? 0
    if (mode & OTHERS) {
      closeToOthers(path, mode)
      onWarn(
        `Other users had access to ${path} (mode ${octal(mode)}), and have none now; if one may have read it, ` +
          'replace what it contains (docs/operations.md, Secrets)',
      )
    }
    return parseFile(path)
  })

const parseFile = (path: string): Stored | null =>
  reading(path, () => (modeOf(path) === null ? null : parseStored(readFileSync(path, 'utf8'))))

const reading = <T>(path: string, read: () => T): T => {
  try {
    return read()
  } catch (error) {
    if (isAppError(error)) throw error
    throw error instanceof Error && 'syscall' in error
      ? new AppError('unavailable', unreadable(path, error))
      : refused(path, `${messageOf(error)}; repair it, or ${RESTORE}`)
  }
}

/**
 * The mode of the file, or 0 for something that is no file, which is refused when it is read. Null if it is missing; a
 * link is not missing, because its target may be on a disk that is not mounted.
 */
const modeOf = (path: string): number | null => {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found) return found.isFile() ? found.mode : 0
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null
  throw refused(path, `it is a link, and its target is missing; mount or ${RESTORE}`)
}

const closeToOthers = (path: string, mode: number): void => {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    throw new AppError(
      'unavailable',
      `${path}: other users have access to it (mode ${octal(mode)}), and this user cannot end that (${reasonOf(error)}): ` +
        'run chmod 600 as its owner, or mount it with that mode',
    )
  }
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')

const refused = (path: string, reason: string): AppError =>
  new AppError('unavailable', `${path} cannot be read as secrets: ${reason}`)

/** Throws with the name of the field that is missing or invalid. The text of the file is in no error: it is secret. */
const parseStored = (text: string): Stored => {
  const fields = fieldsOf(text)
  const field = (name: string, isValid: (value: string) => unknown): string | undefined => {
    const value = fields[name]
    if (value === undefined) return undefined
    if (typeof value === 'string' && isValid(value)) return value
    throw new Error(`${name} is invalid`)
  }
  const master_key = field('master_key', parseKey)
  if (master_key === undefined) throw new Error('master_key is missing')
  return {
    master_key,
    previous_master_key: field('previous_master_key', parseKey),
    api_key: field('api_key', parseApiToken),
    operator_token: field('operator_token', (value) => value.length > 0),
  }
}

const fieldsOf = (text: string): Readonly<Record<string, unknown>> => {
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>
  } catch {} // reported below, without the text
  throw new Error('it is no JSON object')
}

/**
 * Replaces the file by a rename, so that a crash leaves the old or the new one. A link remains, because its target may be
 * the file that is backed up. Durable when it returns.
 */
const writeStored = (path: string, stored: Stored): void => {
  try {
    replaceFile(existsSync(path) ? realpathSync(path) : path, `${JSON.stringify(stored, null, 2)}\n`)
  } catch (error) {
    throw new AppError(
      'unavailable',
      `${path}: cannot be written (${reasonOf(error)})${adviceFor(error) || NOT_REPLACED}`,
      { cause: error },
    )
  }
}

const NOT_REPLACED =
  ': permit this user to replace it in its folder, or set SVC_MASTER_KEY, with which the service writes no such file'

const replaceFile = (path: string, text: string): void => {
  const scratch = `${path}.new`
  rmSync(scratch, { force: true })
  writeFileSync(scratch, text, { mode: 0o600, flag: 'wx', flush: true })
  renameSync(scratch, path)
  syncFolderNow(dirname(path))
}
