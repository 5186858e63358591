import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../src/clock.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { type Embedded, spawnEmbedded } from '../support/backedUp.ts'
import { call, deploy, handle, publish, type Run } from '../support/build.ts'
import { cliJson } from '../support/cli.ts'
import { clockAt } from '../support/clockAt.ts'
import { follow } from '../api/sse.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { type Answer, type Api, openApi } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const DAY_MS = 86_400_000
const KEPT_DAYS = termsOf.free.limits.call_retention_days

/** The second of the next month: its usage is that of the same month when the calls have expired. */
const beganMs = (() => {
  const now = new Date()
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 2, 12)
})()

const FUNCTIONS = {
  'f.js': `
    export const large = () => { console.log('output'); return 'r'.repeat(100_000) }
    export const fails = () => { throw new Error('failed') }`,
}

/** Content above 64 KiB, which is in the blobs. */
const LARGE = 'd'.repeat(100_000)
/** Bytes of small events: with them, the log is larger than what it keeps for new facts. */
const [EVENTS, EVENT_BYTES] = [450, 60_000]

interface Usage {
  readonly usage: { readonly runs_this_period: number }
}

const payloadsIn = (dataDir: string): readonly string[] =>
  readdirSync(join(dataDir, 'blobs'), { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.includes('payloads') && statSync(join(dataDir, 'blobs', path)).isFile(),
  )

/** The plan allows few requests in a second. */
const unlessLimited = (error: unknown): undefined => {
  if (!String(error).includes(' 429 ')) throw error
}

/** The reply to a request that repeats while the plan allows no further one. */
const get = async (api: Api, path: string): Promise<Answer> =>
  until(
    async () => {
      const answer = await api.send('GET', path)
      return answer.status === 429 ? undefined : answer
    },
    { everyMs: 250, timeoutMs: 60_000 },
  )
const dataOf = async <T>(api: Api, path: string): Promise<T> =>
  ((await get(api, path)).json as { readonly data: T }).data

/** Usage and statistics, which must not decrease. */
const countsOf = async (api: Api): Promise<string> => {
  const { usage } = await dataOf<Usage>(api, '/org/usage')
  const range = `from=${new Date(beganMs - DAY_MS).toISOString()}&to=${new Date(beganMs + DAY_MS).toISOString()}`
  const stats = await dataOf<unknown>(api, `/runs/stats?interval=day&${range}`)
  return JSON.stringify([usage.runs_this_period, stats])
}

const retention = suite('the retention of a plan', { timeoutMs: 240_000 })

for (const engine of ['the embedded log', 'EventStoreDB'])
  retention(`applies to what exists when the plan changes, with ${engine}`, async () => {
    const isEmbedded = engine !== 'EventStoreDB'
    virtualClock.set(beganMs) // of the stand-in
    const standIn = isEmbedded ? null : await startStandIn()
    const external = standIn && {
      SVC_EVENT_STORE: standIn.url,
      SVC_MASTER_KEY: randomBytes(32).toString('base64'),
    }
    const dataDir = tempDir()
    const at = (ms: number, sweeps = false): Promise<Embedded> =>
      spawnEmbedded(dataDir, { ...external, ...clockAt(ms, sweeps) })
    let server = await at(beganMs)
    try {
      const svc = <T>(...args: string[]): Promise<T> => cliJson<T>(args, { env: server.cliEnv })
      await svc('orgs', 'create', 'acme', '--plan', 'self_host')
      await svc('envs', 'create', 'acme', 'prod')
      const { token } = await svc<{ token: string }>('keys', 'create', 'acme/prod', '--name', 'test')
      const api = () => openApi(server.url, token)
      await deploy(api(), 'f', FUNCTIONS)
      const run = await call(api(), 'f/large')
      await handle(api(), 'svc:call', { fn: 'f/fails', args: [] })
      await publish(api(), 'large', LARGE)
      if (isEmbedded)
        for (let n = 0; n < EVENTS; n += 10)
          await Promise.all(Array.from({ length: 10 }, () => publish(api(), 'x', 'x'.repeat(EVENT_BYTES))))
      assert.is((await dataOf<Run[]>(api(), '/runs')).length, 2)
      assert.ok((await api().page('/events')).pagination.total >= 3)
      assert.ok(payloadsIn(dataDir).length >= 2)
      assert.match((await get(api(), `/runs/${run.run_id}/logs`)).text, 'output')
      const before = await countsOf(api())
      const following = await follow(api(), '/env/subscribe?from=start')
      const lastId = (await following.next()).id
      following.close()

      await svc('orgs', 'set-plan', 'acme', 'free')
      await until(() => server.output.join('').includes('The retention of streams follows a new plan'))
      assert.is((await dataOf<Run[]>(api(), '/runs')).length, 2, 'nothing has expired yet')
      await server.stop() // it moves the end of the log out of the WAL
      const bytesBefore = statSync(join(dataDir, isEmbedded ? 'log.db' : '.')).size

      virtualClock.set(beganMs + (KEPT_DAYS + 2) * DAY_MS)
      server = await at(beganMs + (KEPT_DAYS + 2) * DAY_MS, true)
      const quiet = { everyMs: 500, timeoutMs: 60_000 }
      await until(async () => (await dataOf<Run[]>(api(), '/runs')).length === 0, quiet)
      await until(async () => (await dataOf<unknown[]>(api(), '/events')).length === 0, quiet)
      await until(() => payloadsIn(dataDir).length === 0, quiet)
      assert.is((await get(api(), `/runs/${run.run_id}`)).status, 404)
      assert.is((await get(api(), `/runs/${run.run_id}/logs`)).status, 404)
      assert.is((await get(api(), `/streams/${run.stream_id}/subscribe?from=start`)).status, 404)
      assert.is(await countsOf(api()), before, 'usage and statistics')
      const late = await until(() => follow(api(), '/env/subscribe', { lastId }).catch(unlessLimited), quiet)
      const expired = (await late.upTo('calls:expired')).at(-1)
      assert.ok(String(expired?.data['before']) > new Date(beganMs).toISOString())
      late.close()
      if (isEmbedded) {
        await until(
          () => server.output.join('').includes('Facts that the plans keep no longer were removed'),
          quiet,
        )
        const size = () => statSync(join(dataDir, 'log.db')).size
        await until(() => size() < bytesBefore - (8 << 20), quiet)
      }
      await svc('projections', 'rebuild')
      assert.is(await countsOf(api()), before, 'usage and statistics after a rebuild')
      await svc('orgs', 'set-plan', 'acme', 'self_host') // without a limit of requests
      assert.is((await call(api(), 'f/large')).status, 'succeeded')
    } finally {
      await server.stop()
      await standIn?.stop()
      virtualClock.set(null)
    }
  })

retention.run()
