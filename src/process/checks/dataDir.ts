import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isAppError, messageOf } from '../../errors.ts'
import type { Config } from '../config.ts'
import { checkStoredSecrets } from '../secretsFile.ts'
import { type Check, failed, ok, warning } from './check.ts'
import { existingFolder } from './machine.ts'

/** Access for the group, and for all other users. */
const OTHERS = 0o077

/** Checks the data directory and the secrets of an installation, and changes nothing. */
export const checkDataDir = (
  config: Pick<Config, 'dataDir' | 'masterKey' | 'previousMasterKey'>,
): readonly Check[] => [directoryOf(config.dataDir), ...secretsOf(config)]

const directoryOf = (dataDir: string): Check => {
  const folder = existingFolder(dataDir)
  const stat = statSync(folder)
  if (!stat.isDirectory())
    return failed('data directory', `${folder} is not a directory`, 'set SVC_DATA_DIR to a directory')
  if (folder !== dataDir)
    return unwritable(folder) ?? ok('data directory', `${dataDir} will be created at the first start`)
  const mine = process.getuid?.() ?? stat.uid
  if (mine !== 0 && mine !== stat.uid)
    return failed(
      'data directory',
      `${dataDir} belongs to user ${stat.uid}, and this is user ${mine}`,
      `run svc as user ${stat.uid}, or chown -R ${mine} ${dataDir} while the service is stopped`,
    )
  if (process.getuid !== undefined && stat.mode & OTHERS)
    return warning('data directory', `other users have access to ${dataDir}`, `chmod 700 ${dataDir}`)
  const refused = unwritable(dataDir)
  if (refused) return refused
  const lock = join(dataDir, 'lock')
  const owner = existsSync(lock) ? `, used by process ${readFileSync(lock, 'utf8')}` : ''
  return ok('data directory', `${dataDir}${owner}`)
}

/** Null if the service can write in the folder. */
const unwritable = (folder: string): Check | null => {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    return failed(
      'data directory',
      `cannot write in ${folder}: ${messageOf(error)}`,
      'permit the user of the service to write there, or set SVC_DATA_DIR to another directory',
    )
  }
}

const secretsOf = ({
  dataDir,
  masterKey,
  previousMasterKey,
}: Pick<Config, 'dataDir' | 'masterKey' | 'previousMasterKey'>): readonly Check[] => {
  const path = join(dataDir, 'secrets.json')
  const previous: readonly Check[] =
    previousMasterKey === null
      ? []
      : [
          warning(
            'former master key',
            'SVC_MASTER_KEY_PREVIOUS is set',
            'run svc secrets rotate-master; remove the variable when svc secrets status reports the end',
          ),
        ]
  if (masterKey !== null) return [ok('master key', 'from SVC_MASTER_KEY'), ...previous]
  try {
    checkStoredSecrets(dataDir)
  } catch (error) {
    if (!isAppError(error)) throw error
    return [failed('master key', error.message, `restore ${path}, or set SVC_MASTER_KEY`)]
  }
  if (!existsSync(path)) return [ok('master key', `${path} will be created at the first start`)]
  if (process.getuid !== undefined && statSync(path).mode & OTHERS)
    return [
      failed(
        'master key',
        `other users have access to ${path}`,
        `chmod 600 ${path}; if another user may have read it, run svc secrets rotate-master and svc keys rotate`,
      ),
    ]
  return [ok('master key', `in ${path}, readable by its owner only`)]
}
