import { adoptLog } from '../commands/installation/adoptLog.ts'
import { checkLog } from '../commands/installation/checkLog.ts'
import { checkRestored } from '../commands/installation/restoringBlob.ts'
import { openAggregates } from '../domain/aggregates.ts'
import type { Logger } from '../logger.ts'
import type { Config } from './config.ts'
import type { Engines } from './engines.ts'
import { openMasterKeys, type OpenedMasterKeys } from './openMasterKeys.ts'
import type { Secrets } from './secretsFile.ts'

/**
 * Checks that the log is whole and that read models, blobs and master key belong to it. Writes nothing before all checks
 * have passed.
 */
export const openLog = async (
  engines: Pick<Engines, 'store' | 'readModels' | 'blobs'>,
  { secrets, config, logger }: { secrets: Secrets; config: Pick<Config, 'acceptLoss'>; logger: Logger },
): Promise<OpenedMasterKeys> => {
  await checkRestored(engines.blobs)
  const deps = { ...engines, aggregates: openAggregates(engines.store), logger }
  const accepted = await checkLog(deps, config.acceptLoss)
  const keys = await openMasterKeys(engines, secrets, accepted?.replaces)
  await adoptLog(deps, accepted)
  return keys
}
