import * as assert from 'uvu/assert'
import { deploy, handle, publish, type Event, type Run, runsOf } from '../support/build.ts'
import { allOf, isExact, isLost } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { PATIENCE } from '../support/patience.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { follow, publishAndFollow } from './sse.ts'

/** Long enough to be seen: a machine that is busy does not see a run that is pending_retry for a second. */
const RETRY_AFTER_MS = 5_000 * PATIENCE

/** Two handlers of the event `work`, without and with retries. The event data are the durations of the attempts. */
const FUNCTIONS = `
import { setTimeout } from 'node:timers/promises'
import { currentRun, fn } from 'svc'
const work = ({ data }) => setTimeout(data[currentRun().attempt - 1] ?? data.at(-1), 'done')
export const plain = fn({ 'on-event': 'work' }, work)
export const keeps = fn({ 'on-event': 'work', retry: { attempts: 5, delay: 10 } }, work)
export const quick = fn({ 'on-event': 'quick' }, ({ data }) => data)
export const later = fn({ 'on-event': 'later', retry: { attempts: 1, delay: ${RETRY_AFTER_MS} } }, () => { throw new Error('not yet') })
`

/** Longer than any test: a first attempt of this duration is in progress when the service is killed. */
const UNTIL_KILLED_MS = 250_000

const dataDir = tempDir()
let server: ServerProcess
const start = async (): Promise<Api> => {
  server = await spawnServer({ dataDir })
  return server.api
}

/** Fewer for a read-model server that scans. */
const [EVENTS, ...KILLED_AFTER] = PATIENCE > 1 ? [60, 12, 50] : [200, 40, 190]

/** Publishes events until the service dies; resolves with those it acknowledged. */
const publishUntilDeath = async (api: Api, onAcknowledged: (count: number) => void): Promise<Event[]> => {
  const acknowledged: Event[] = [await publish(api, 'work', [UNTIL_KILLED_MS, 5])]
  let left = EVENTS
  const client = async () => {
    while (left-- > 0) {
      try {
        acknowledged.push(await publish(api, 'work', [left < EVENTS / 2 ? 1000 : 5]))
      } catch {
        return // what was not acknowledged may have been stored or not
      }
      onAcknowledged(acknowledged.length)
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return acknowledged
}

const crash = suite<{ acknowledged: Event[] }>('a service that is killed', { timeoutMs: 60_000 })

crash.before(async (context) => {
  await deploy(await start(), 'work', { 'jobs.js': FUNCTIONS })
  context.acknowledged = []
})

for (const acknowledged of KILLED_AFTER) {
  crash(
    `has started each handler exactly once, killed after ${acknowledged} events (I3)`,
    async (context) => {
      const { api } = server
      let death: Promise<unknown> = Promise.reject(
        new Error(`Expected ${acknowledged} events to be acknowledged`),
      )
      death.catch(() => {})
      const published = await publishUntilDeath(api, (count) => {
        if (count === acknowledged) death = server.end('SIGKILL')
      })
      await death
      context.acknowledged.push(...published)
      const again = await start()
      const events = await allOf<Event>(again, '/events?event_type=work')
      const stored = new Set(events.map(({ event_id }) => event_id))
      assert.equal(
        context.acknowledged.filter(({ event_id }) => !stored.has(event_id)),
        [],
      )
      const runs = await until(
        async () => {
          const found = Map.groupBy(await allOf<Run>(again, '/runs?type=event'), ({ event_id }) => event_id)
          for (const { event_id } of events) isExact(found.get(event_id) ?? [])
          return found
        },
        { timeoutMs: 40_000, everyMs: 200 },
      )
      assert.ok([...runs.values()].flat().some(isLost), 'no run was lost')
    },
  )
}

crash('starts lost runs again within seconds, with and without a retry policy', async () => {
  const { event_id } = await publish(server.api, 'work', [UNTIL_KILLED_MS])
  await until(async () => (await runsOf(server.api, event_id)).length === 2)
  await server.end('SIGKILL')
  const api = await start()
  const runs = await until(async () => {
    const found = await runsOf(api, event_id)
    return found.length === 4 ? found : undefined
  })
  const ofAttempt = (n: number) => runs.filter(({ attempt }) => attempt === n)
  assert.ok(ofAttempt(1).every(isLost))
  assert.match(ofAttempt(1)[0]?.error?.message ?? '', 'died')
  assert.equal(
    ofAttempt(2)
      .map(({ fn, status }) => [fn, status])
      .sort(),
    [
      ['jobs/keeps', 'running'],
      ['jobs/plain', 'running'],
    ],
  )
  for (const { run_id } of ofAttempt(2)) await publish(api, 'svc:cancel', { run_id })
})

crash('starts the retries that were due meanwhile', async () => {
  const { event_id } = await publish(server.api, 'later')
  const pending = await until(async () =>
    (await runsOf(server.api, event_id)).find(({ status }) => status === 'pending_retry'),
  )
  await server.end('SIGKILL')
  await until(() => Date.now() > Date.parse(pending.retry_at ?? ''), { timeoutMs: 2 * RETRY_AFTER_MS })
  const api = await start()
  const runs = await until(async () => {
    const found = await runsOf(api, event_id)
    return found.length === 2 && found.every(({ status }) => status === 'failed') ? found : undefined
  })
  assert.equal(
    runs.map(({ attempt }) => attempt),
    [2, 1],
  )
})

crash('lets its clients resume at their positions (I5)', async () => {
  const follower = await publishAndFollow(server.api, 'work', [UNTIL_KILLED_MS, 2000])
  const { data } = await follower.next()
  const [run] = (await follower.upTo('run:start')).slice(-1)
  await server.end('SIGKILL')
  await until(() => follower.over)
  const resumed = await follow(await start(), `/streams/${String(data['stream_id'])}/subscribe`, {
    lastId: run?.id ?? '',
  })
  const names = (await resumed.rest()).map(({ event }) => event)
  const again = ['run:start', 'run:start', 'run:stop', 'run:stop']
  assert.equal(names, ['run:start', 'run:fail', 'run:fail', ...again, 'stream:complete'])
})

crash('survives repeated kills', async () => {
  for (let n = 0; n < 3; n++) {
    const { event_id } = await publish(server.api, 'quick', n)
    await server.end('SIGKILL')
    const api = await start()
    assert.is((await api.get<Event>(`/events/${event_id}`)).event_data, n)
  }
  assert.is((await handle(server.api, 'quick', 'works')).result, 'works')
})

crash.after(() => server.stop())
crash.run()
