import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { openBundler } from '../bundle/openBundler.ts'
import { readSettings } from '../bundle/settings.ts'
import { deployBundle } from '../cli/deployBundle.ts'
import type { Run } from '../client/api.ts'
import type { Client } from '../client/client.ts'
import { createClient } from '../client/createClient.ts'
import { virtualClock } from '../clock.ts'
import { LEVELS, openLogger } from '../logger.ts'
import { readConfig } from '../process/config.ts'
import { type Service, start } from '../start.ts'
import { demandKeys, msOf } from './expected.ts'
import type { SentEvent, ServiceOptions, TestService } from './serviceTypes.ts'
import { openTimeline } from './timeline.ts'

const OPTIONS = ['dir', 'zip', 'project', 'context', 'now', 'env', 'timeoutMs', 'log']

/** Engines and places that the kit decides. */
const OWN = {
  HOST: '127.0.0.1',
  PORT: '0',
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
}

/** Real milliseconds for which a step may be under way, by default. */
const TIMEOUT_MS = 30_000
/** A service that no test uses for this time is stopped, so that a forgotten `stop` does not keep the process alive. */
const UNUSED_MS = 60_000

let isRunning = false

/** See `startService` of `index.ts`. */
export const startService = async (options: ServiceOptions): Promise<TestService> => {
  const { project, timeoutMs, now, env, log, ...given } = checked(options)
  if (isRunning)
    throw new Error(
      'startService: expected one service at a time in a process, because it sets the clock; call stop() of the other one first',
    )
  isRunning = true
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-testkit-'))
  const removeData = () => rmSync(dataDir, { recursive: true, force: true })
  process.on('exit', removeData)
  let service: Service | undefined
  const stop = async (): Promise<void> => {
    await service?.stop()
    virtualClock.set(null)
    removeData()
    process.off('exit', removeData)
    isRunning = false
  }
  try {
    virtualClock.set(now)
    const logger = openLogger(
      (line) => void process.stderr.write(line),
      log === null ? { level: 'error' } : { level: log },
    )
    const config = readConfig({ ...env, ...OWN, SVC_DATA_DIR: dataDir })
    service = await start(config, log === null ? { ...logger, info: () => {}, warn: () => {} } : logger, {
      version: 'test',
      git_sha: 'test',
    })
    const client = createClient({ url: service.listens, token: service.apiKey })
    await deployTo(client, project, given)
    return await openService({ service, client, timeoutMs, stop })
  } catch (error) {
    await stop()
    throw error
  }
}

const checked = (options: ServiceOptions) => {
  demandKeys('startService(options)', options, OPTIONS)
  const { dir, zip, context = {}, env = {}, timeoutMs = TIMEOUT_MS, log = null } = options
  if ((dir === undefined) === (zip === undefined))
    throw new TypeError(`startService: expected dir or zip, got ${dir === undefined ? 'neither' : 'both'}`)
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0)
    throw new TypeError(`timeoutMs: expected milliseconds above 0, got ${String(timeoutMs)}`)
  if (log !== null && !LEVELS.includes(log))
    throw new TypeError(`log: expected one of ${LEVELS.join(', ')}, got ${String(log)}`)
  const fixed = Object.keys(env).find((name) => name in OWN || name === 'SVC_DATA_DIR')
  if (fixed !== undefined)
    throw new TypeError(`env.${fixed}: expected a variable that the test kit does not set`)
  const settings = dir === undefined ? null : readSettings(dir)
  return {
    project: options.project ?? settings?.project ?? 'test',
    settings,
    zip,
    context,
    env,
    timeoutMs,
    log,
    now: msOf('now', options.now ?? new Date()),
  }
}

const deployTo = async (
  client: Client,
  project: string,
  { settings, zip, context }: Pick<ReturnType<typeof checked>, 'settings' | 'zip' | 'context'>,
): Promise<void> => {
  await client.request('POST /v1/projects', { body: { name: project } })
  for (const [key, value] of Object.entries(context)) {
    const body = { key, value, description: '' }
    await client.request('POST /v1/projects/{project}/context', { path: { project }, body })
  }
  const bundle = settings ? await bundled(settings) : bundleOf(zip ?? new Uint8Array())
  await deployBundle(client, { project, bundle })
}

const bundled = async (settings: ReturnType<typeof readSettings>) => {
  const bundler = await openBundler(settings)
  return bundler.rebuild().finally(() => bundler.close())
}

const bundleOf = (zip: Uint8Array) => ({ zip, sha256: createHash('sha256').update(zip).digest('hex') })

const openService = async ({
  service,
  client,
  timeoutMs,
  stop,
}: {
  readonly service: Service
  readonly client: Client
  readonly timeoutMs: number
  readonly stop: () => Promise<void>
}): Promise<TestService> => {
  const timeline = await openTimeline(service.node, timeoutMs)
  let stopped: Promise<void> | undefined
  let unused = false
  const close = () => {
    clearTimeout(idle)
    timeline.close()
    return (stopped ??= stop())
  }
  const giveUp = () => {
    unused = true
    process.stderr.write(
      `startService: no test used the service for ${UNUSED_MS / 1000} s, so it was stopped; call stop() when a test ends\n`,
    )
    void close()
  }
  let idle = setTimeout(giveUp, UNUSED_MS)
  timeline.onActivity(() => idle.refresh())
  const used = <Result>(work: () => Result): Result => {
    if (stopped)
      throw new Error(
        `The service was stopped${unused ? ' because no test used it' : ''}; call startService again`,
      )
    idle = idle.refresh()
    return work()
  }
  const runsOf = (ids: readonly string[]): Promise<Run[]> =>
    Promise.all(ids.map((run_id) => client.runs.get(run_id)))

  return {
    url: service.listens,
    key: service.apiKey,
    client,
    get now() {
      return timeline.now
    },
    send: (type: string, data?: unknown): SentEvent => {
      const published = used(() =>
        (client.send as (type: string, data?: unknown) => Promise<Awaited<SentEvent>>)(type, data),
      )
      return Object.assign(published, {
        settled: async () => {
          const { stream_id } = await published
          await used(() => timeline.settled())
          return runsOf(timeline.runsIn(stream_id))
        },
      })
    },
    settled: async () => used(() => timeline.settled()),
    advance: async (by) => runsOf(await used(() => timeline.advance(by))),
    stop: close,
    [Symbol.asyncDispose]: close,
  }
}
