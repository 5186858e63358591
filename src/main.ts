import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeDir } from './codeCache.js'
import { readConfig } from './config.ts'
import { isAppError, messageOf } from './errors.ts'
import { openLogger } from './log.ts'
import { start } from './start.ts'

/** A second signal, or this long after the first, ends the process whatever is still under way. */
const FORCE_AFTER_MS = 30_000

const log = openLogger((line) => process.stdout.write(line))

const fail = (error: unknown): never => {
  process.stderr.write(
    `svc: ${isAppError(error) ? error.message : ((error as Error).stack ?? messageOf(error))}\n`,
  )
  process.exit(1)
}

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const main = async (): Promise<void> => {
  try {
    const config = readConfig()
    const service = await start(config, log, { version, git_sha: gitSha(), codeDir })
    if (service.firstStart) {
      process.stdout.write(
        `\nMade on this first start, shown this once (kept in ${join(config.dataDir, 'secrets.json')}):\n` +
          `  API key         ${service.apiKey}\n  Operator token  ${service.operatorToken}\n\n`,
      )
    }
    log.info(`svc ${version} is ready on ${service.url}`, { data: config.dataDir })

    let stopping = false
    const stop = (signal: NodeJS.Signals): void => {
      if (stopping) process.exit(1)
      stopping = true
      log.info(`${signal}: stopping; once more to stop at once`)
      setTimeout(() => process.exit(1), FORCE_AFTER_MS).unref()
      service.stop().then(
        () => process.exit(0),
        (error: unknown) => fail(error),
      )
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  } catch (error) {
    fail(error)
  }
}

/** The commit that runs here; `unknown` outside a checkout. */
function gitSha(): string {
  try {
    const git = new URL('../.git/', import.meta.url)
    const head = readFileSync(new URL('HEAD', git), 'utf8').trim()
    return head.startsWith('ref: ') ? readFileSync(new URL(head.slice(5), git), 'utf8').trim() : head
  } catch {
    return 'unknown'
  }
}

if (import.meta.main) await main()
