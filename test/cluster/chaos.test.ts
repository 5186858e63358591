import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { readConfig, type Role } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { follow, type Follower, type Sent } from '../api/sse.ts'
import { deploy, type Event, publish, type Run } from '../support/build.ts'
import type { Cluster } from '../support/cluster.ts'
import { allOf, isExact, isLost, tickResults, WORK } from '../support/exactRuns.ts'
import { parseExposition } from '../support/exposition.ts'
import { type Api, openApi } from '../support/http.ts'
import { hasClusterEngines, openCluster, type OpenCluster } from '../support/openCluster.ts'
import { SLACK } from '../support/patience.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const roles = suite('SVC_ROLES')

roles('that leave out some need engines that other nodes can share', () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [main], {
    env: { SVC_DATA_DIR: tempDir(), SVC_ROLES: 'api', PORT: '0' },
    encoding: 'utf8',
    timeout: 20_000 * SLACK,
  })
  assert.is(status, 1)
  assert.match(stderr, /SVC_ROLES: .*SVC_EVENT_STORE, SVC_READ_MODELS and SVC_BLOBS/)
})

roles.run()

const below = randomOf(SEED)
const TICKS = `
import { fn } from 'svc'
export const minutely = fn({ schedule: '* * * * *' }, tick => tick.data.scheduled_time)
`

/** What was published, and how much may be. */
interface Published {
  /** Every event whose publication succeeded. */
  readonly acknowledged: Event[]
  /** Publishers wait when there are as many: on a slow machine, a read-model server that scans might never catch up. */
  most: number
}

/** Publishes until `over`. */
const publisher = async (cluster: Cluster, api: Api, published: Published, over: AbortSignal) => {
  const { acknowledged } = published
  while (!over.aborted) {
    await until(() => acknowledged.length < published.most || over.aborted, { timeoutMs: 120_000 })
    try {
      acknowledged.push(await publish(api, 'work', below(300)))
      await delay(100) // a read-model server that scans must keep up
    } catch {
      await until(() => cluster.nodes('api').length > 0) // an event without an acknowledgement may be stored or not
    }
  }
}

/** Follows the environment until `over`. Like an EventSource, it reconnects with the last id when the stream ends. */
const followAlways = (api: Api, over: AbortSignal) => {
  const earlier: Sent[] = []
  let current: Follower | undefined
  const keepFollowing = async () => {
    while (!over.aborted) {
      const lastId = earlier.at(-1)?.id
      const from = '/env/subscribe?from=start'
      const stream = await follow(api, from, lastId === undefined ? {} : { lastId }).catch(() => null)
      if (!stream) continue
      current = stream
      const close = () => stream.close()
      over.addEventListener('abort', close, { once: true })
      if (over.aborted) close()
      await stream.rest().catch(() => {}) // an interrupted reply ends like a complete one
      over.removeEventListener('abort', close)
      earlier.push(...stream.seen)
      current = undefined
    }
  }
  return { seen: () => [...earlier, ...(current?.seen ?? [])], ended: keepFollowing() }
}

/** Events that are published between two kills, at least and at most. */
const LOAD = { least: 25, most: 125 }

/** Long events, each with two runs: it is as good as certain that each of two workers has one of these runs. */
const LONG = { events: 6, ms: 10_000 }

/** Publishes long events until the oldest worker has runs. It asks no list: read models may be late under load. */
const occupied = async ({ cluster, api }: OpenCluster): Promise<Event[]> => {
  const url = cluster.nodes('worker')[0]?.url ?? ''
  const { operatorToken } = openSecrets(readConfig(cluster.env))
  const events: Event[] = []
  await until(
    async () => {
      const more = Array.from({ length: LONG.events }, () => publish(api, 'work', LONG.ms))
      events.push(...(await Promise.all(more)))
      const { text } = await openApi(url, operatorToken).send('GET', `${url}/metrics`)
      return parseExposition(text).sum('svc_runs_active') > 0
    },
    { timeoutMs: 30_000, everyMs: 1000 },
  )
  return events
}

const run = async (opened: OpenCluster): Promise<void> => {
  const { cluster, api } = opened
  await deploy(api, 'work', { 'jobs.js': WORK, 'ticks.js': TICKS })
  const over = new AbortController()
  const leaving = new AbortController()
  const following = followAlways(api, leaving.signal)
  const acknowledged: Event[] = []
  const published: Published = { acknowledged, most: LOAD.most }
  const publishing = Array.from({ length: 4 }, () => publisher(cluster, api, published, over.signal))
  for (const role of ['worker', 'projector', 'saga', 'api'] as const satisfies Role[]) {
    const enough = acknowledged.length + LOAD.least
    published.most = acknowledged.length + LOAD.most
    await until(() => acknowledged.length >= enough, { timeoutMs: 30_000 })
    if (role === 'worker') acknowledged.push(...(await occupied(opened)))
    await cluster.kill(role)
    await cluster.add(role)
  }
  over.abort()
  await Promise.all(publishing)
  assert.ok(acknowledged.length > 50, `${acknowledged.length} events`)

  const events = await allOf<Event>(api, '/events?event_type=work')
  const stored = new Set(events.map(({ event_id }) => event_id))
  assert.equal(
    acknowledged.filter(({ event_id }) => !stored.has(event_id)),
    [],
  )
  const runs = await until(
    async () => {
      const found = Map.groupBy(await allOf<Run>(api, '/runs?type=event'), ({ event_id }) => event_id)
      for (const { event_id } of events) isExact(found.get(event_id) ?? [])
      return [...found.values()].flat()
    },
    { timeoutMs: 60_000, everyMs: 300 },
  )
  assert.ok(runs.some(isLost), 'no run was lost: the worker was killed at rest')

  await until(
    async () => {
      const found = await allOf<Run>(api, '/runs?type=schedule')
      return found.some(({ status }) => status === 'succeeded')
    },
    { timeoutMs: 65_000, everyMs: 500 },
  )
  const at = await tickResults(api)
  assert.is(new Set(at).size, at.length, `a tick fired twice: ${JSON.stringify(at)}`)

  await until(async () => (await allOf<Run>(api, '/runs?status=running')).length === 0, {
    timeoutMs: 60_000,
  })
  const last = await publish(api, 'last')
  await until(() => following.seen().some(({ data }) => data['event_id'] === last.event_id), {
    timeoutMs: 60_000,
    everyMs: 100,
  })
  leaving.abort()
  await following.ended
  const seen = following.seen()
  const created = seen.flatMap(({ event, data }) =>
    event === 'event:created' ? [String(data['event_id'])] : [],
  )
  assert.is(new Set(created).size, created.length, 'an event came twice')
  const missing = [...stored].filter((event_id) => !created.includes(event_id))
  assert.equal(missing, [])
  assert.equal(
    seen.map(({ id }) => id),
    seen.map(({ id }) => id).toSorted(),
  )
}

if (!hasClusterEngines()) {
  process.stdout.write('The cluster was not tested: it needs SVC_TEST_MONGODB and SVC_TEST_S3\n')
} else {
  const chaos = suite(`two nodes of each role, each killed once under load (SVC_TEST_SEED=${SEED})`, {
    timeoutMs: 300_000,
  })
  chaos(
    'lose nothing, start each handler once, fire each tick once, and report everything once',
    async () => {
      const opened = await openCluster()
      try {
        await run(opened)
      } finally {
        await opened.stop()
      }
    },
  )
  chaos.run()
}
