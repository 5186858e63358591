import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, isAppError } from '../errors.ts'
import { silent } from '../logger.ts'
import { type Check, checked, failed, ok } from './checks/check.ts'
import { checkDataDir } from './checks/dataDir.ts'
import { checkEngines } from './checks/engines.ts'
import { checkDisk, checkNodeVersion, checkOpenFiles } from './checks/machine.ts'
import { checkStoredKeys } from './checks/storedKeys.ts'
import { checkSandbox } from './checks/sandbox.ts'
import { type Config, readConfig } from './config.ts'
import { openSandbox } from './openSandbox.ts'

/** Checks this machine for a service that does not run, with the settings of the environment. Changes nothing. */
export const checkMachine = async (): Promise<readonly Check[]> => {
  const machine = [checkNodeVersion(), ...checkOpenFiles()]
  let config: Config
  try {
    config = readConfig()
  } catch (error) {
    if (!isAppError(error)) throw error
    const { problems = [error.message] } = error.data as { readonly problems?: readonly string[] }
    const fix = 'correct the variable (README.md, Configuration)'
    return [...problems.map((problem) => failed('configuration', problem, fix)), ...machine]
  }
  return [
    ok('configuration', 'valid'),
    ...(await checkEngines(config, null)),
    ...checkDataDir(config),
    ...(await checkStoredKeys(config)),
    ...(await checkDisk(config.dataDir)),
    ...machine,
    ...(await checkOwnSandbox(config)),
  ]
}

/** Starts a child as the service would, with files that are removed again. */
const checkOwnSandbox = (config: Config): Promise<readonly Check[]> =>
  checked('sandbox', 'see docs/operations.md, The sandbox', async () => {
    const tooSlow = new AbortController()
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-doctor-'))
    const closers: (() => void)[] = []
    const folders = [dataDir]
    try {
      const { info, cacheDir } = await openSandbox({
        config: { ...config, dataDir },
        codeDir: null,
        logger: silent,
        onClose: (close) => void closers.push(close),
        signal: tooSlow.signal,
        waiting: (reason) => reason !== null && tooSlow.abort(new AppError('unavailable', reason)),
      })
      folders.push(cacheDir)
      return [checkSandbox(info, config.sandbox)]
    } finally {
      for (const close of closers) close()
      for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    }
  })
