import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { codeDir } from '../../src/process/codeCache.js'
import { readConfig } from '../../src/process/config.ts'
import type { Permissions } from '../../src/events/org.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { openLogger } from '../../src/logger.ts'
import { newApiToken, parseApiToken } from '../../src/access/tokens.ts'
import { start } from '../../src/start.ts'
import { BREAKS, report } from './factCheck.ts'
import { codeCache } from './codeCache.ts'
import { type Api, openApi } from './http.ts'
import { hasEnded } from './hasEnded.ts'
import { installation } from './installation.ts'
import { openLog } from './openLog.ts'
import { tempDir } from './tempDir.ts'
import { until } from './until.ts'

export interface Started {
  /** Default: a new empty directory. */
  readonly dataDir?: string
  /** Variables of DESIGN.md, Start and configure. */
  readonly env?: Readonly<Record<string, string>>
}

interface Spawned extends Started {
  /** The longest time until the service is ready. */
  readonly startMs?: number
}

export interface TestServer {
  readonly url: string
  readonly dataDir: string
  /** The API as the first key of the first environment. */
  readonly api: Api
  /** The output of the service so far. */
  readonly output: readonly string[]
  stop(): Promise<void>
}

/** Starts the real service in this process on a free port, or uses the cluster in `SVC_TEST_CLUSTER`. */
export const startServer = async ({ dataDir = tempDir(), env }: Started = {}): Promise<TestServer> => {
  const cluster = process.env['SVC_TEST_CLUSTER']
  if (cluster) return tenantOf(cluster.split(' '), dataDir)
  const output: string[] = []
  const logger = openLogger((line) => void output.push(line))
  const service = await start(readConfig(installation(dataDir, env)), logger, {
    version: 'test',
    git_sha: 'test',
    codeDir,
  })
  return {
    url: service.listens,
    dataDir,
    api: openApi(service.listens, service.apiKey),
    output,
    stop: () => service.stop(),
  }
}

/** Creates an environment in a cluster that other tests use too. */
const tenantOf = async ([url = '', ...nodes]: readonly string[], dataDir: string): Promise<TestServer> => {
  const [key = ''] = await addEnvironment(dataDir, `t-${newId()}`, EVERYTHING)
  const api = openApi(nodes, key)
  await until(() => api.page('/projects'))
  return { url, dataDir, api, output: [], stop: () => Promise.resolve() }
}

export interface ServerProcess extends TestServer {
  readonly process: ChildProcess
  /** Sends the signal and resolves with the exit code of the process, or with the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>
}

const checkFacts = new URL('./checkFacts.ts', import.meta.url).href
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const spawned = new Set<ChildProcess>()
process.on('exit', () => spawned.forEach((child) => child.kill('SIGKILL')))

/** Starts the real service in another process, for tests that kill it. */
export const spawnServer = async ({
  dataDir = tempDir(),
  env,
  startMs = 60_000,
}: Spawned = {}): Promise<ServerProcess> => {
  const child = spawn(process.execPath, [...codeCache, '--import', checkFacts, main], {
    env: installation(dataDir, env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  spawned.add(child)
  const output: string[] = []
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => {
      spawned.delete(child)
      for (const line of output.join('').split('\n'))
        if (line.startsWith(BREAKS)) report(line.slice(BREAKS.length))
      resolve(code ?? signal)
    })
  })
  for (const pipe of [child.stdout, child.stderr])
    pipe.setEncoding('utf8').on('data', (text: string) => output.push(text))
  const url = await until(
    () => {
      if (hasEnded(child)) return 'exited'
      return /"listens":"([^"]+)"/.exec(output.join(''))?.[1]
    },
    { timeoutMs: startMs },
  ).catch((error: unknown) => {
    child.kill('SIGKILL') // it would keep the data directory
    throw new Error(`Expected the server to start within ${startMs} ms, got: ${output.join('')}`, {
      cause: error,
    })
  })
  if (url === 'exited') {
    const by = await ended // its output is complete then
    const ending = typeof by === 'number' ? `exit code ${by}` : by
    throw new Error(`Expected the server to start, got ${ending}: ${output.join('')}`)
  }
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  const api = openApi(url, openSecrets(readConfig(installation(dataDir, env))).apiKey)
  return { url, dataDir, api, output, process: child, end, stop: async () => void (await end('SIGTERM')) }
}

/**
 * Adds an environment `{org}/dev` to a data directory that no service uses. Resolves with an API key for
 * each permission map.
 */
export const addEnvironment = async (
  dataDir: string,
  org: string,
  ...maps: readonly Permissions[]
): Promise<string[]> => {
  const config = readConfig(installation(dataDir))
  const { store, keyring } = await openLog(config)
  const { orgs, envs, apiKeys } = openAggregates(store)
  const [org_id, env_id] = [newId(), newId()]
  const cause = { correlation_id: org_id, env_id }
  await orgs.handle(
    streamOf.org(org_id),
    { type: 'CreateOrg', org_id, slug: org, name: org, plan: 'self_host' },
    cause,
  )
  await envs.handle(streamOf.env(env_id), { type: 'CreateEnv', env_id, org_id, name: 'dev' }, cause)
  const keys: string[] = []
  for (const permissions of maps) {
    const key = newApiToken(newId())
    const { api_key_id, secret } = parseApiToken(key) ?? { api_key_id: '', secret: '' }
    const mac = keyring.macOf(secret)
    await apiKeys.handle(
      streamOf.key(api_key_id),
      { type: 'CreateApiKey', api_key_id, env_id, name: 'test', mac, permissions },
      cause,
    )
    keys.push(key)
  }
  await store.close()
  return keys
}

export const EVERYTHING: Permissions = { '*:*': ['*'] }

/** Starts a server with a second environment and an API client of that environment. */
export const startWithOther = async (
  started: Started = {},
): Promise<TestServer & { readonly other: Api }> => {
  const dataDir = started.dataDir ?? tempDir()
  const [key = ''] = await addEnvironment(dataDir, `other-${newId()}`, EVERYTHING)
  const server = await startServer({ ...started, dataDir })
  const other = openApi(process.env['SVC_TEST_CLUSTER']?.split(' ').slice(1) ?? server.url, key)
  await until(() => other.page('/projects'))
  return { ...server, other }
}
