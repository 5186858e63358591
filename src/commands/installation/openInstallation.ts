import { randomBytes } from 'node:crypto'
import { parseApiToken } from '../../access/tokens.ts'
import { AppError, isAppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { newId } from '../../ids.ts'
import { Keyring } from '../../secrets/keyring.ts'
import type { MasterKeys } from '../../secrets/masterKeys.ts'
import { type WrappedKey, WrappedKeys } from '../../secrets/wrappedKeys.ts'
import type { CommandDeps } from '../deps.ts'
import { FIRST_ENV, FIRST_ORG } from '../orgs/ensureFirstTenant.ts'
import { envIdAt } from '../orgs/createEnv.ts'
import { hasFacts } from './hasFacts.ts'
import { type Founded, readInstallation } from './readInstallation.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'blobs'> & { readonly masterKeys: MasterKeys }

interface Given {
  /** The configured master key, from which a log of an earlier version derived everything. */
  readonly masterKey: Uint8Array
  /** The first API key, if it is known: proof that the master key of an earlier log is the right one. */
  readonly apiKey: string
  /** Where the master key is from, for messages: `SVC_MASTER_KEY` or the path of `secrets.json`. */
  readonly source: string
  /** The ids of missing logs that an operator has given up. */
  readonly replaces?: readonly string[]
}

export interface OpenedInstallation {
  readonly rootKey: Buffer
  /** Whether the configured master key is that of the first start. */
  readonly isFirstMasterKey: boolean
}

/**
 * Opens the root key of this installation, and creates it at the first start. Rejects with `bad_request` if the log or
 * the blobs belong to another master key; nothing is stored then.
 */
export const openInstallation = async (deps: Deps, given: Given): Promise<OpenedInstallation> => {
  const { blobs, masterKeys } = deps
  const wrapped = new WrappedKeys(blobs, masterKeys)
  let state = await readInstallation(deps)
  if (state === null) {
    await found(deps, wrapped, given)
    state = await readInstallation(deps)
    if (state === null)
      throw new AppError('internal_server_error', 'Expected an installation after its first start, got none')
  }
  checkMasterKeys(state, masterKeys, given)
  return {
    rootKey: await rootKeyOf(state, wrapped),
    isFirstMasterKey: state.founded_by === masterKeys.configured,
  }
}

const found = async (
  deps: Deps,
  wrapped: WrappedKeys,
  { masterKey, replaces = [], ...given }: Given,
): Promise<void> => {
  const { aggregates, store, masterKeys } = deps
  const isNew = !(await hasFacts(store))
  if (!isNew) {
    if (await readInstallation(deps)) return // another node has founded it meanwhile, and stored its first facts
    await checkEarlierLog(deps, wrapped, { masterKey, ...given })
  }
  // A log of an earlier version derived credentials from the master key itself, and they must remain valid.
  const root: WrappedKey = { kind: 'root', id: newId() }
  const master_key_id = masterKeys.configured
  await wrapped.putFirst(root, master_key_id, isNew ? randomBytes(32) : masterKey)
  const canary = masterKeys.canaryOf(master_key_id)
  const { events } = await aggregates.installation.handle(
    streamOf.installation,
    {
      type: 'FoundInstallation',
      root_key_id: root.id,
      master_key_id,
      canary,
      ...(replaces.length > 0 && { replaces: [...replaces] }),
    },
    { correlation_id: root.id, ...bySystem('setup') },
  )
  if (events.length === 0) await wrapped.remove(root) // another node was faster
}

/** A log without a canary proves its master key by a key that it wrapped, or by the MAC of the first API key. */
const checkEarlierLog = async (
  { store, aggregates, masterKeys }: Deps,
  wrapped: WrappedKeys,
  { masterKey, apiKey, source }: Given,
): Promise<void> => {
  const env_id = envIdAt(FIRST_ORG, FIRST_ENV)
  const id = await aggregates.dataKeys.read(streamOf.dataKeys(env_id), ({ current }) => current)
  if (id !== null && (await wrapped.wrappedBy({ kind: 'data', id, scope: { env_id } })) === null)
    throw foreignBlobs(`the data key ${id}`)
  for await (const key of wrapped.list()) {
    const by = await wrapped.wrappedBy(key)
    if (key.kind !== 'data' || by === null) continue
    if (by !== masterKeys.configured) throw wrongKey(source, masterKeys.configured, by)
    await wrapped.get(key) // rejects if it does not open
    return
  }
  const { api_key_id, secret } = parseApiToken(apiKey) ?? {}
  if (api_key_id === undefined || secret === undefined) return
  for await (const { event } of store.read(streamOf.key(api_key_id), { limit: 1 })) {
    if (event.type === 'ApiKeyCreated' && !new Keyring(masterKey).proves(secret, event.mac))
      throw wrongKey(source, masterKeys.configured, 'another one, by the MAC of the first API key')
  }
}

/** Refuses the start of a process that lacks a master key with which something is wrapped. */
const checkMasterKeys = (
  { current, former, retired, rotation }: Founded,
  masterKeys: MasterKeys,
  { source }: Given,
): void => {
  const { configured } = masterKeys
  const isReplaced = retired.includes(configured) || former?.id === configured
  if (isReplaced && !masterKeys.has(current.id))
    throw new AppError(
      'bad_request',
      `${source}: the master key ${configured} was replaced by ${current.id} at ${rotation?.started_at}; ` +
        'set SVC_MASTER_KEY to the new one' +
        (former ? ', and SVC_MASTER_KEY_PREVIOUS to this one until the rotation is complete' : ''),
    )
  if (!masterKeys.has(current.id)) throw wrongKey(source, configured, current.id)
  if (!masterKeys.opens(current.id, current.canary))
    throw new AppError('bad_request', `${source}: the log contains a damaged canary; restore the log`)
  if (former && !masterKeys.has(former.id))
    throw new AppError(
      'bad_request',
      `SVC_MASTER_KEY_PREVIOUS: expected the former master key ${former.id}, because its rotation is not complete; ` +
        'set it until `svc secrets status` reports that the rotation is done',
    )
}

const rootKeyOf = async (state: Founded, wrapped: WrappedKeys): Promise<Buffer> => {
  try {
    return await wrapped.get({ kind: 'root', id: state.root_key_id })
  } catch (error) {
    throw isAppError(error, 'not_found') ? foreignBlobs(`the root key ${state.root_key_id}`) : error
  }
}

const wrongKey = (source: string, got: string, expected: string): AppError =>
  new AppError(
    'bad_request',
    `${source}: the log was written with another master key (expected ${expected}, got ${got}); set SVC_MASTER_KEY ` +
      'to the former key, or restore the secrets.json that belongs to this log. To replace the key, see ' +
      '`svc secrets rotate-master`',
  )

export const foreignBlobs = (missing: string): AppError =>
  new AppError(
    'bad_request',
    `SVC_BLOBS: the blobs do not belong to this log: ${missing} is missing; use the blobs with which the log was ` +
      'written, or restore them from a backup',
  )
