import { PermanentError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import type { Logger } from '../../logger.ts'
import { masterKeyIdOf } from '../../secrets/masterKeys.ts'
import type { CommandDeps } from '../deps.ts'
import { readInstallation } from './readInstallation.ts'
import { rewrapKeys, rewrapRestored } from './rewrapKeys.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'wrappedKeys' | 'masterKeys' | 'masterKeyFile'> & {
  readonly logger: Logger
}

/**
 * Follows the master keys of the installation. With `rewraps`, this node wraps the keys again during a rotation. When the
 * former key is retired, this process forgets it. One that was retired before it begins first opens the keys that an operator has
 * restored from a backup. Rejects when this process lacks the current master key.
 */
export const followMasterKeys = async (
  deps: Deps,
  { rewraps }: { readonly rewraps: boolean },
  signal: AbortSignal,
): Promise<void> => {
  const { store, masterKeys, masterKeyFile, logger } = deps
  let isFirst = true
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
      for (const id of isFirst && rewraps ? dropped : []) {
        const restored = await rewrapRestored(deps, id, signal)
        if (restored === null) return
        if (restored > 0)
          logger.info('Keys from an earlier backup are wrapped again with the current master key', {
            current,
            former: id,
            restored,
          })
      }
      for (const id of dropped) masterKeys.drop(id)
      if (dropped.length > 0)
        masterKeyFile?.dropPreviousMasterKey((key) => dropped.includes(masterKeyIdOf(key)))
    } else if (rewraps) {
      logger.info('The keys are wrapped again, because the master key was replaced', { current, former })
      if ((await rewrapKeys(deps, signal)) !== null)
        logger.info('The rotation of the master key is complete', { current, former })
    }
    isFirst = false
  }
}
