import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../src/clock.ts'
import { envIdAt } from '../../src/commands/orgs/createEnv.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { readConfig } from '../../src/process/config.ts'
import { openBlobs } from '../../src/process/engines.ts'
import { type Embedded, spawnEmbedded } from '../support/backedUp.ts'
import { call, deploy, handle, publish, type Run } from '../support/build.ts'
import { cliJson } from '../support/cli.ts'
import { createTenant } from '../support/createTenant.ts'
import { clockAt } from '../support/clockAt.ts'
import { follow } from '../api/sse.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { type Answer, type Api, openApi } from '../support/http.ts'
import { EMBEDDED, realEngines } from '../support/installation.ts'
import { hasClusterEngines } from '../support/openCluster.ts'
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

/** An organization whose environment a sweep reaches after that of `acme`, because of its id. */
const SWEPT_LATER = ['a', 'b', 'c', 'd', 'e', 'f'].find(
  (slug) => envIdAt(slug, 'prod') > envIdAt('acme', 'prod'),
) as string

interface Usage {
  readonly usage: { readonly runs_this_period: number }
}

const payloadsIn = async (engines: Readonly<Record<string, string>>): Promise<readonly string[]> => {
  const blobs = await openBlobs(readConfig(engines), { onlyRead: true })
  try {
    return (await Array.fromAsync(blobs.list('payloads/'))).map(({ key }) => key)
  } finally {
    await blobs.close()
  }
}

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

/** Calls a function and waits for its run, within the rate of the plan. */
const callSlowly = async (api: Api, fn: string): Promise<Run> => {
  const patient = { everyMs: 250, timeoutMs: 60_000 }
  const { event_id } = await until(
    () => publish(api, 'svc:call', { fn, args: [] }).catch(unlessLimited),
    patient,
  )
  return until(async () => {
    const runs = await dataOf<Run[]>(api, `/events/${event_id}/runs`)
    return runs.find(({ status }) => status === 'succeeded')
  }, patient)
}

/** Usage and statistics, which must not decrease. */
const countsOf = async (api: Api): Promise<string> => {
  const { usage } = await dataOf<Usage>(api, '/org/usage')
  const range = `from=${new Date(beganMs - DAY_MS).toISOString()}&to=${new Date(beganMs + DAY_MS).toISOString()}`
  const stats = await dataOf<unknown>(api, `/runs/stats?interval=day&${range}`)
  return JSON.stringify([usage.runs_this_period, stats])
}

const quiet = { everyMs: 500, timeoutMs: 60_000 }

const retention = suite('the retention of a plan', { timeoutMs: 240_000 })

for (const engine of ['the embedded log', 'EventStoreDB', 'all engines of a cluster'])
  (engine === 'all engines of a cluster' && !hasClusterEngines() ? retention.skip : retention)(
    `applies to what exists when the plan changes, with ${engine}`,
    async () => {
      const isEmbedded = engine === 'the embedded log'
      virtualClock.set(beganMs) // of the stand-in
      const standIn = isEmbedded ? null : await startStandIn()
      const dataDir = tempDir()
      const external = standIn && {
        ...(engine !== 'EventStoreDB' && realEngines(dataDir)),
        SVC_EVENT_STORE: standIn.url,
        SVC_MASTER_KEY: randomBytes(32).toString('base64'),
      }
      const payloads = () => payloadsIn({ ...EMBEDDED, ...external, SVC_DATA_DIR: dataDir })
      const at = (ms: number, sweeps = false): Promise<Embedded> =>
        spawnEmbedded(dataDir, { ...external, ...clockAt(ms, sweeps) })
      let server = await at(beganMs)
      try {
        const svc = <T>(...args: string[]): Promise<T> => cliJson<T>(args, { env: server.cliEnv })
        const { token } = await createTenant(server.cliEnv, { org: 'acme', plan: 'self_host' })
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
        assert.ok((await payloads()).length >= 2)
        assert.match((await get(api(), `/runs/${run.run_id}/logs`)).text, 'output')
        const before = await countsOf(api())
        const following = await follow(api(), '/env/subscribe?from=start')
        const lastId = (await following.next()).id
        following.close()

        await svc('orgs', 'set-plan', 'acme', 'free')
        await until(
          () => server.output.join('').includes('The retention of streams follows a new plan'),
          quiet,
        )
        assert.is((await dataOf<Run[]>(api(), '/runs')).length, 2, 'nothing has expired yet')
        await server.stop() // it moves the end of the log out of the WAL
        const bytesBefore = statSync(join(dataDir, isEmbedded ? 'log.db' : '.')).size

        virtualClock.set(beganMs + (KEPT_DAYS + 2) * DAY_MS)
        server = await at(beganMs + (KEPT_DAYS + 2) * DAY_MS, true)
        await until(async () => (await dataOf<Run[]>(api(), '/runs')).length === 0, quiet)
        await until(async () => (await dataOf<unknown[]>(api(), '/events')).length === 0, quiet)
        await until(async () => (await payloads()).length === 0, quiet)
        assert.is((await get(api(), `/runs/${run.run_id}`)).status, 404)
        assert.is((await get(api(), `/runs/${run.run_id}/logs`)).status, 404)
        assert.is((await get(api(), `/streams/${run.stream_id}/subscribe?from=start`)).status, 404)
        assert.is(await countsOf(api()), before, 'usage and statistics')
        const late = await until(
          () => follow(api(), '/env/subscribe', { lastId }).catch(unlessLimited),
          quiet,
        )
        // The first service reports an earlier day if its sweep comes after the change of the plan.
        const keptFrom = async () => String((await late.upTo('calls:expired')).at(-1)?.data['before'])
        await until(async () => (await keptFrom()) > new Date(beganMs).toISOString())
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

        // Upwards: what the former plan would have removed by then remains, and the sweep removes that of another organization.
        const kept = await callSlowly(api(), 'f/large')
        const other = await createTenant(server.cliEnv, { org: SWEPT_LATER, plan: 'free' })
        const otherApi = () => openApi(server.url, other.token)
        await publish(otherApi(), 'large', LARGE)
        const stored = await payloads()
        assert.ok(stored.length >= 2)
        await svc('orgs', 'set-plan', 'acme', 'self_host')
        await until(
          () => server.output.join('').includes('The retention of streams follows a new plan'),
          quiet,
        )
        await server.stop()
        virtualClock.set(beganMs + 2 * (KEPT_DAYS + 2) * DAY_MS)
        server = await at(beganMs + 2 * (KEPT_DAYS + 2) * DAY_MS, true)
        await until(async () => (await payloads()).length < stored.length, quiet)
        await until(async () => (await dataOf<unknown[]>(otherApi(), '/events')).length === 0, quiet)
        const after = await dataOf<Run>(api(), `/runs/${kept.run_id}`)
        assert.equal([after.status, after.result], ['succeeded', 'r'.repeat(100_000)])
        assert.match((await get(api(), `/runs/${kept.run_id}/logs`)).text, 'output')
        assert.is((await get(api(), `/events/${kept.event_id}`)).status, 200)
        const stream = await follow(api(), `/streams/${kept.stream_id}/subscribe?from=start`)
        assert.is((await stream.next()).event, 'run:start')
        stream.close()
      } finally {
        await server.stop()
        await standIn?.stop()
        virtualClock.set(null)
      }
    },
  )

retention.run()
