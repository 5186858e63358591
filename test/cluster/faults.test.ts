import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { deploy, type Event, type Run } from '../support/build.ts'
import { engineUrl, reportExercised } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import {
  type EngineProxies,
  engineSettings,
  type EngineSetting,
  hostOf,
  openEngineProxies,
} from '../support/engineProxies.ts'
import { allOf } from '../support/exactRuns.ts'
import type { FaultProxy } from '../support/faultProxy.ts'
import type { Api } from '../support/http.ts'
import { realEngines } from '../support/installation.ts'
import { PATIENCE, SLACK } from '../support/patience.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** The duration of each fault, milliseconds. */
const OUTAGE_MS = Number(process.env['SVC_TEST_OUTAGE_MS'] ?? 1500)
/** The longest time from the end of a fault until everything works again, milliseconds (I9). */
const RECOVERED_MS = 5000
/** The longest time for one reply during a fault, milliseconds. */
const REPLY_MS = 12_000 * PATIENCE * SLACK

const faults: Readonly<Record<string, (proxy: FaultProxy) => void>> = {
  refuses: (proxy) => proxy.refuse(),
  'swallows everything': (proxy) => proxy.blackhole(),
  'resets connections': (proxy) => proxy.reset(),
  'takes 2 s longer': (proxy) => proxy.delay(2000),
  'closes its half of connections': (proxy) => proxy.halfClose(),
}

const typeOf = (setting: string, what: string): string =>
  `${setting}-${what}`.replace(/[^A-Za-z]+/g, '-').toLowerCase()

/** Each outage has its own type of event with a handler, so that no test reads the events of another one. */
const TYPES = engineSettings.flatMap((setting) => Object.keys(faults).map((what) => typeOf(setting, what)))
const HANDLERS = TYPES.map(
  (type, n) => `export const on${n} = fn({ 'on-event': '${type}' }, ({ data }) => data.length)`,
).join('\n')
/** Too large for a fact, so that it is stored in the blobs. */
const LARGE = 'x'.repeat(70 << 10)

interface Opened {
  readonly server: TestServer
  readonly proxies: EngineProxies
  close(): Promise<void>
}

/** A service on all engines, each behind a proxy of its own. */
const open = async (): Promise<Opened> => {
  const standIn = engineUrl('eventStore') === null ? await startStandIn() : null
  if (standIn) {
    reportExercised('EventStoreDB stand-in')
    process.env['SVC_TEST_STAND_IN'] = standIn.url
  }
  const dataDir = tempDir()
  const { proxies, env } = await openEngineProxies(realEngines(dataDir))
  const server = await startServer({ dataDir, env })
  return {
    server,
    proxies,
    async close() {
      await server.stop()
      for (const proxy of Object.values(proxies)) await proxy.close()
      await standIn?.stop()
    },
  }
}

interface Answered {
  readonly status: number
  readonly retryAfter: string | null
  readonly event_id: string | undefined
}

const publish = async (api: Api, event_type: string, data: string): Promise<Answered> => {
  const { status, headers, json } = await api.send('POST', '/events', {
    body: { event_type, event_data: data },
    signal: AbortSignal.timeout(REPLY_MS),
  })
  const event_id = (json as { data?: Event }).data?.event_id
  return { status, retryAfter: headers.get('retry-after'), event_id }
}

/** Publishes small and large events and reads lists until `over`; resolves with all answers to publishes. */
const underLoad = async (api: Api, type: string, over: AbortSignal): Promise<Answered[]> => {
  const answers: Answered[] = []
  const client = async (n: number) => {
    while (!over.aborted) {
      answers.push(await publish(api, type, n === 0 ? LARGE : 'x'))
      await delay(150)
    }
  }
  const reader = async () => {
    while (!over.aborted) {
      const { status } = await api.send('GET', '/runs?limit=5', {
        signal: AbortSignal.timeout(30_000 * SLACK),
      })
      assert.ok(status === 200 || status === 503, `a list answered ${status}`)
      await delay(200)
    }
  }
  await Promise.all([client(0), client(1), client(2), reader()])
  return answers
}

const isRefusal = ({ status, retryAfter }: Answered): boolean => status === 503 && retryAfter !== null

const outage =
  (setting: EngineSetting, what: string, fault: (proxy: FaultProxy) => void) =>
  async ({ server, proxies }: Opened): Promise<void> => {
    const { api } = server
    const type = typeOf(setting, what)
    const proxy = proxies[setting]
    assert.ok(proxy, `no engine ${setting}`)
    const began = clock.monotonic()
    const over = new AbortController()
    const load = underLoad(api, type, over.signal)
    load.catch(() => {}) // its failure is reported below
    try {
      fault(proxy)
      await delay(OUTAGE_MS)
      await proxy.heal()
      await until(
        async () => {
          const answers = [await publish(api, type, 'x'), await publish(api, type, LARGE)]
          const { status } = await api.send('GET', '/runs?limit=1')
          return status === 200 && answers.every((answer) => answer.status === 201)
        },
        { timeoutMs: RECOVERED_MS },
      )
    } finally {
      over.abort()
      await proxy.heal()
    }
    const answers = await load
    for (const answer of answers) {
      assert.ok(answer.status === 201 || isRefusal(answer), JSON.stringify(answer))
    }
    if (setting === 'SVC_REDIS') assert.ok(answers.every(({ status }) => status === 201))

    const events = await allOf<Event>(api, `/events?event_type=${type}`)
    const stored = new Set(events.map(({ event_id }) => event_id))
    assert.equal(
      answers.filter(({ event_id }) => event_id !== undefined && !stored.has(event_id)),
      [],
    )
    await until(
      async () => {
        const seconds = Math.ceil((clock.monotonic() - began) / 1000) + 5
        const recent = await allOf<Run>(api, `/runs?type=event&time_range=PT${seconds}S`)
        const runs = recent.filter(({ event_id }) => stored.has(event_id ?? ''))
        const ended = runs.filter(({ status }) => status === 'succeeded').map(({ event_id }) => event_id)
        assert.is(runs.length, events.length)
        assert.equal(new Set(ended), stored)
        return true
      },
      { timeoutMs: 20_000, everyMs: 200 },
    )
  }

/** One service for all faults of one engine: one per fault would take longer, one for all engines would become slow. */
const losing = (setting: EngineSetting): void => {
  const lost = suite<Opened>(`${setting}, unavailable for a while`, { timeoutMs: 90_000 + OUTAGE_MS * 2 })
  lost.before(async (context) => {
    Object.assign(context, await open())
    await deploy(context.server.api, 'work', { 'jobs.js': `import { fn } from 'svc'\n${HANDLERS}` })
  })
  lost.after(({ close }) => close())
  for (const [what, fault] of Object.entries(faults)) lost(`it ${what}`, outage(setting, what, fault))
  lost.run()
}

const needed = ['mongodb', 'redis', 's3'] as const
if (needed.every((engine) => engineUrl(engine) !== null)) {
  for (const setting of engineSettings) losing(setting)
} else {
  process.stdout.write('Not tested with faults: it takes SVC_TEST_MONGODB, SVC_TEST_REDIS and SVC_TEST_S3\n')
  const addresses = suite('the address of an engine')
  addresses('is found in any valid URL', () => {
    assert.equal(hostOf('esdb://user:p%40ss@host:2113?tls=false', 1), { host: 'host', port: 2113 })
    assert.equal(hostOf('mongodb://host/db', 27_017), { host: 'host', port: 27_017 })
  })
  addresses.run()
}
