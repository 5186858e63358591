import { openInstallation } from '../commands/installation/openInstallation.ts'
import { readInstallation } from '../commands/installation/readInstallation.ts'
import { openAggregates } from '../domain/aggregates.ts'
import { MasterKeys } from '../secrets/masterKeys.ts'
import type { Engines } from './engines.ts'
import type { Secrets } from './secretsFile.ts'

export interface OpenedMasterKeys {
  readonly masterKeys: MasterKeys
  readonly rootKey: Uint8Array
  /** Whether the configured master key is that of the first start. */
  readonly isFirstMasterKey: boolean
}

/**
 * Opens the master keys of this process and checks them against the log. Founds the installation at its first start;
 * `replaces` are the ids of missing logs that it replaces.
 */
export const openMasterKeys = async (
  { store, blobs }: Pick<Engines, 'store' | 'blobs'>,
  { masterKey, previousMasterKey, apiKey, file }: Secrets,
  replaces: readonly string[] = [],
): Promise<OpenedMasterKeys> => {
  const aggregates = openAggregates(store)
  const currentId = async () => (await readInstallation({ aggregates }))?.current.id ?? masterKeys.configured
  const masterKeys: MasterKeys = new MasterKeys(
    previousMasterKey === null ? [masterKey] : [masterKey, previousMasterKey],
    currentId,
  )
  const source = file?.path ?? 'SVC_MASTER_KEY'
  const opened = await openInstallation(
    { store, aggregates, blobs, masterKeys },
    { masterKey, apiKey, source, replaces },
  )
  return { masterKeys, ...opened }
}
