import { join } from 'node:path'
import { isAppError } from '../../errors.ts'
import { MasterKeys, masterKeyIdOf } from '../../secrets/masterKeys.ts'
import { WrappedKeys } from '../../secrets/wrappedKeys.ts'
import type { Config } from '../config.ts'
import { openBlobs } from '../engines.ts'
import { masterKeysIn, SECRETS_FILE } from '../secretsFile.ts'
import { type Check, checked, failed, ok } from './check.ts'

type Given = Pick<Config, 'dataDir' | 'masterKey' | 'previousMasterKey' | 'blobs'>

const NAME = 'stored keys'
const FIX =
  'set SVC_MASTER_KEY to the master key with this id, SVC_MASTER_KEY_PREVIOUS if it was replaced, or restore secrets.json; ' +
  'svc secrets status shows the id'

/** The master keys of the configuration, else those of `secrets.json`. */
const masterKeysOf = ({ dataDir, masterKey, previousMasterKey }: Given): readonly Buffer[] => {
  if (masterKey !== null) return [masterKey, previousMasterKey].filter((key) => key !== null)
  try {
    return masterKeysIn(join(dataDir, SECRETS_FILE))
  } catch (error) {
    if (!isAppError(error)) throw error
    return [] // the check of the master key reports it
  }
}

/** Checks that the master key opens the keys in the blobs, and changes nothing. A running service has proved it at its start. */
export const checkStoredKeys = (config: Given): Promise<readonly Check[]> =>
  checked(NAME, 'make the blobs readable, then check again', async () => {
    const [first, ...others] = masterKeysOf(config)
    if (first === undefined) return [] // the installation is new, or the check of the master key has failed
    const blobs = await openBlobs(config, { onlyRead: true })
    try {
      const masterKeys = new MasterKeys([first, ...others])
      const wrapped = new WrappedKeys(blobs, masterKeys)
      let count = 0
      for await (const key of wrapped.list()) {
        const by = await wrapped.wrappedBy(key)
        if (by === null) continue // it was erased in the meantime
        if (!masterKeys.has(by))
          return [
            failed(NAME, `they need the master key ${by}, and ${masterKeyIdOf(first)} is configured`, FIX),
          ]
        await wrapped.get(key)
        count++
      }
      return [
        ok(NAME, count === 0 ? 'none yet' : `the master key ${masterKeys.configured} opens all ${count}`),
      ]
    } finally {
      await blobs.close()
    }
  })
