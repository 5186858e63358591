import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isAppError } from '../../errors.ts'
import type { Config } from '../config.ts'
import { checkStoredSecrets } from '../secretsFile.ts'
import { type Check, failed, ok, warning } from './check.ts'

/** Access for the group, and for all other users. */
const OTHERS = 0o077

/** Checks the data directory and the secrets of an installation, and changes nothing. */
export const checkDataDir = (
  config: Pick<Config, 'dataDir' | 'masterKey' | 'previousMasterKey'>,
): readonly Check[] => [directoryOf(config.dataDir), ...secretsOf(config)]

const directoryOf = (dataDir: string): Check => {
  if (!existsSync(dataDir)) return ok('data directory', `${dataDir} will be created at the first start`)
  const stat = statSync(dataDir)
  const mine = process.getuid?.() ?? stat.uid
  if (!stat.isDirectory())
    return failed('data directory', `${dataDir} is not a directory`, 'set SVC_DATA_DIR to a directory')
  if (mine !== 0 && mine !== stat.uid)
    return failed(
      'data directory',
      `${dataDir} belongs to user ${stat.uid}, and this is user ${mine}`,
      `run svc as user ${stat.uid}, or chown -R ${mine} ${dataDir} while the service is stopped`,
    )
  if (process.getuid !== undefined && stat.mode & OTHERS)
    return warning('data directory', `other users have access to ${dataDir}`, `chmod 700 ${dataDir}`)
  const lock = join(dataDir, 'lock')
  const owner = existsSync(lock) ? `, used by process ${readFileSync(lock, 'utf8')}` : ''
  return ok('data directory', `${dataDir}${owner}`)
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
