import { readFileSync } from 'node:fs'
import { codeDir } from './process/codeCache.js'
import { type Config, readConfig } from './process/config.ts'
import { preventCoreDumps } from './process/noCoreDumps.ts'
import { isAppError, messageOf } from './errors.ts'
import { masked, openLogger } from './logger.ts'
import { type Service, start } from './start.ts'

/** The process ends within this time after the first signal, and at once after a second signal. */
const FORCE_AFTER_MS = 30_000

const logger = openLogger((line) => process.stdout.write(line))

const fail = (error: unknown): never => {
  process.stderr.write(
    `svc: ${masked(isAppError(error) ? error.message : ((error as Error).stack ?? messageOf(error)))}\n`,
  )
  process.exit(1)
}

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const main = async (): Promise<void> => {
  process.umask(0o077) // other users have no access to any file of the service
  preventCoreDumps()
  process.report.excludeEnv = true // the environment may contain the master key
  const startGivenUp = new AbortController()
  let service: Service | undefined
  let stopping = false
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1)
    stopping = true
    logger.info(`${signal}: stopping; send it again to stop at once`)
    setTimeout(() => process.exit(1), FORCE_AFTER_MS).unref()
    startGivenUp.abort()
    service?.stop().then(
      () => process.exit(0),
      (error: unknown) => fail(error),
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('SIGUSR1', () => {}) // without a listener it opens a debugger, unless --disable-sigusr1 is given
  try {
    const config = readConfig()
    service = await start(config, logger, {
      version,
      git_sha: gitSha(),
      codeDir,
      signal: startGivenUp.signal,
    })
    if (stopping) return void service.stop().then(() => process.exit(0), fail)
    announce(service, config)
  } catch (error) {
    if (stopping) process.exit(0)
    fail(error)
  }
}

const announce = (
  { generated, apiKey, operatorToken, url, listens }: Service,
  { dataDir, roles }: Config,
): void => {
  const lines = [
    ...(generated.apiKey ? [`  API key         ${apiKey}\n`] : []),
    ...(generated.operatorToken ? [`  Operator token  ${operatorToken}\n`] : []),
  ]
  if (lines.length > 0) {
    const where = generated.file === null ? 'derived from SVC_MASTER_KEY' : `stored in ${generated.file}`
    process.stdout.write(`\nCreated on this first start and not shown again (${where}):\n${lines.join('')}\n`)
  }
  logger.info(`svc ${version} is ready on ${url}`, {
    listens,
    data: dataDir,
    roles: [...roles].join(','),
    api_key: apiKey.replace(/[^_]+$/, '***'),
  })
}

/** The commit of the checkout; `unknown` without one. */
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
