import { PermanentError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import type { Logger } from '../../logger.ts'
import { masterKeyIdOf } from '../../secrets/masterKeys.ts'
import type { CommandDeps } from '../deps.ts'
import { readInstallation } from './readInstallation.ts'
import { rewrapKeys } from './rewrapKeys.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'wrappedKeys' | 'masterKeys' | 'masterKeyFile'> & {
  readonly logger: Logger
}

/**
 * Follows the master keys of the installation. With `rewraps`, this node wraps the keys again during a rotation. When the
 * former key is retired, this process forgets it. Rejects when this process lacks the current master key.
 */
export const followMasterKeys = async (
  deps: Deps,
  { rewraps }: { readonly rewraps: boolean },
  signal: AbortSignal,
): Promise<void> => {
  const { store, masterKeys, masterKeyFile, logger } = deps
  for await (const _ of store.follow(streamOf.installation, { signal })) {
    const state = await readInstallation(deps)
    if (state === null) continue
    const { retired } = state
    const [current, former] = [state.current.id, state.former?.id]
    if (!masterKeys.has(current))
      throw new PermanentError(
        'unavailable',
        `SVC_MASTER_KEY: the master key was replaced by ${current}; restart this node with the new master key`,
      )
    if (former === undefined) {
      const dropped = retired.filter((id) => masterKeys.has(id))
      for (const id of dropped) masterKeys.drop(id)
      if (dropped.length > 0)
        masterKeyFile?.dropPreviousMasterKey((key) => dropped.includes(masterKeyIdOf(key)))
    } else if (rewraps) {
      logger.info('The keys are wrapped again, because the master key was replaced', { current, former })
      if ((await rewrapKeys(deps, signal)) !== null)
        logger.info('The rotation of the master key is complete', { current, former })
    }
  }
}
