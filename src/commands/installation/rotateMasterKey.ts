import { randomBytes } from 'node:crypto'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { checkNotRetired } from '../../domain/installation.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { masterKeyIdOf } from '../../secrets/masterKeys.ts'
import { readInstallation } from './readInstallation.ts'
import { masterKeyStatus, type MasterKeyStatus } from './masterKeyStatus.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'masterKeys' | 'masterKeyFile' | 'wrappedKeys'>

/**
 * Replaces the master key. With a file, the new key is `master_key` or random, and is stored before anything is wrapped
 * with it; otherwise it is the configured one. A repetition during a rotation changes nothing. The keys are wrapped again
 * in the background.
 */
export const rotateMasterKey = async (
  deps: Deps,
  { master_key }: { readonly master_key?: Uint8Array | undefined },
  cause: Cause,
): Promise<MasterKeyStatus> => {
  const { aggregates, masterKeys, masterKeyFile } = deps
  const retired = (await readInstallation(deps))?.retired ?? []
  const before = await masterKeyStatus(deps)
  if (before.status === 'rotating') return before
  const isPending = masterKeys.configured !== before.master_key_id
  if (masterKeyFile === null) checkConfigured(isPending, master_key)
  // After a crash, the file may contain a new key that the log does not know: it is used instead of a third one.
  // An earlier version may have stored a key there that was replaced before: it is never used again.
  else if (!isPending || retired.includes(masterKeys.configured)) {
    const next = master_key ?? randomBytes(32)
    if (masterKeyIdOf(next) === before.master_key_id)
      throw new AppError('bad_request', 'master_key: expected a new key, got the current one')
    checkNotRetired(retired, masterKeyIdOf(next))
    masterKeyFile.replaceMasterKey(next, (key) => masterKeyIdOf(key) === before.master_key_id)
    masterKeys.add(next)
  } else if (master_key !== undefined && masterKeyIdOf(master_key) !== masterKeys.configured)
    throw new AppError(
      'conflict',
      'master_key: an earlier request has stored another new key; repeat the request without master_key',
    )
  const master_key_id = masterKeys.configured
  await aggregates.installation.handle(
    streamOf.installation,
    { type: 'ReplaceMasterKey', master_key_id, canary: masterKeys.canaryOf(master_key_id), now: clock.iso() },
    cause,
  )
  return masterKeyStatus(deps)
}

const checkConfigured = (isPending: boolean, master_key: Uint8Array | undefined): void => {
  if (master_key !== undefined)
    throw new AppError(
      'bad_request',
      'master_key: expected none, because SVC_MASTER_KEY provides the master key of this node',
    )
  if (!isPending)
    throw new AppError(
      'bad_request',
      'SVC_MASTER_KEY: expected a new master key, got the current one; set SVC_MASTER_KEY to a new key and ' +
        'SVC_MASTER_KEY_PREVIOUS to the current one on every node, restart the nodes, then repeat this request',
    )
}
