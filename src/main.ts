import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { codeDir } from './process/codeCache.js'
import { type Config, readConfig } from './process/config.ts'
import { preventCoreDumps } from './process/noCoreDumps.ts'
import { isAppError, messageOf } from './errors.ts'
import { openLogger } from './logger.ts'
import { openOutput, type Output } from './process/output.ts'
import { onStopSignals } from './process/stopSignals.ts'
import { masked } from './secrets/redaction.ts'
import { type Service, start } from './start.ts'

/** The process ends within this time after the first signal, and at once when it is sent again. */
const FORCE_AFTER_MS = 30_000

/** The descriptor of standard output. `process.stdout` would wait for the reader of a pipe. */
const STDOUT = 1

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
  const config = configured()
  const output = openOutput(STDOUT, (lines) =>
    logger.warn('Lines of this log were dropped, because nobody read the output', { lines }),
  )
  const format = config.logFormat ?? (isatty(STDOUT) ? 'text' : 'json')
  const logger = openLogger((line) => output.write(line), { level: config.logLevel, format })
  const startGivenUp = new AbortController()
  let service: Service | undefined
  let stopping = false
  const beginStop = (reason: string): void => {
    stopping = true
    logger.info(reason)
    setTimeout(() => process.exit(1), FORCE_AFTER_MS).unref()
    startGivenUp.abort()
    service?.stop().then(
      () => process.exit(0),
      (error: unknown) => fail(error),
    )
  }
  onStopSignals({
    first: (signal) => {
      if (stopping) process.exit(1)
      beginStop(`${signal}: stopping; send it again to stop at once`)
    },
    again: () => process.exit(1),
  })
  // The process that started this one has ended, or no longer needs it: `svc dev`.
  process.on('disconnect', () => stopping || beginStop('The parent process has disconnected: stopping'))
  process.on('SIGUSR1', () => {}) // without a listener it opens a debugger, unless --disable-sigusr1 is given
  try {
    service = await start(config, logger, {
      version,
      git_sha: gitSha(),
      codeDir,
      signal: startGivenUp.signal,
      stalled: (reason) => process.send?.({ stalled: reason }),
    })
    if (stopping) return void service.stop().then(() => process.exit(0), fail)
    if (process.send) process.send({ url: service.url, key: service.apiKey })
    else showTokens(service, output)
    logger.info(`svc ${version} is ready on ${service.url}`, {
      listens: service.listens,
      data: config.dataDir,
      roles: [...config.roles].join(','),
      api_key: service.apiKey.replace(/[^_]+$/, '***'),
    })
  } catch (error) {
    if (stopping) process.exit(0)
    fail(error)
  }
}

const configured = (): Config => {
  try {
    return readConfig()
  } catch (error) {
    return fail(error)
  }
}

const showTokens = ({ generated, apiKey, operatorToken }: Service, output: Output): void => {
  const lines = [
    ...(generated.apiKey ? [`  API key         ${apiKey}\n`] : []),
    ...(generated.operatorToken ? [`  Operator token  ${operatorToken}\n`] : []),
  ]
  if (lines.length === 0) return
  const where = generated.file === null ? 'derived from SVC_MASTER_KEY' : `stored in ${generated.file}`
  output.write(`\nCreated on this first start and not shown again (${where}):\n${lines.join('')}\n`)
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
