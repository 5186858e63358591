import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { follow, type Follower } from '../api/sse.ts'
import { deploy, type Event, publish, type Run } from '../support/build.ts'
import { hostOf } from '../support/engineProxies.ts'
import { namedUrl } from '../support/engines.ts'
import { allOf, isExact, tickResults, WORK } from '../support/exactRuns.ts'
import { type FaultProxy, openFaultProxy } from '../support/faultProxy.ts'
import { type Api, openApi } from '../support/http.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, openCluster, type OpenCluster } from '../support/openCluster.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** The duration of a partition, milliseconds. */
const OUTAGE_MS = Number(process.env['SVC_TEST_OUTAGE_MS'] ?? 30_000)
const PATIENT = { timeoutMs: 60_000, everyMs: 300 }
/** The database of these tests: it is emptied. */
const DATABASE = 9

const TICKS = `
import { currentRun, fn } from 'svc'
export const secondly = fn({ schedule: '* * * * * *' }, ({ data }) => data.scheduled_time)
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 1, delay: 2 } }, () => {
  if (currentRun().attempt === 1) throw new Error('the first attempt')
})
`

interface Context extends OpenCluster {
  /** In front of Redis: one for the first node of each role, one for the second. */
  readonly proxies: readonly [FaultProxy, FaultProxy]
}

const open = async (redis: string): Promise<Context> => {
  const target = hostOf(redis, 6379)
  const proxies = [await openFaultProxy(target), await openFaultProxy(target)] as const
  const prefix = `svc_test_${newId()}:`
  const urlOf = (proxy: FaultProxy) => {
    const url = new URL(proxy.url(redis))
    url.pathname = `/${DATABASE}`
    url.searchParams.set('prefix', prefix)
    return url.href
  }
  const opened = await openCluster((n) => ({ SVC_REDIS: urlOf(proxies[n % 2 === 0 ? 0 : 1]) }))
  await deploy(opened.api, 'work', { 'jobs.js': WORK, 'ticks.js': TICKS })
  return {
    ...opened,
    proxies,
    async stop() {
      await opened.stop()
      for (const proxy of proxies) await proxy.close()
    },
  }
}

/** Removes everything in the database of these tests. */
const empty = async (redis: string): Promise<void> => {
  const socket = connect(hostOf(redis, 6379))
  socket.end(`SELECT ${DATABASE}\r\nFLUSHDB\r\nQUIT\r\n`)
  let reply = ''
  socket.setEncoding('utf8').on('data', (text: string) => (reply += text))
  await once(socket, 'close')
  assert.match(reply, /^\+OK\r\n\+OK/)
}

const createdIn = ({ seen }: Follower): string[] =>
  seen.flatMap(({ event, data }) => (event === 'event:created' ? [String(data['event_id'])] : []))

/** Publishes through both API nodes and follows both while something happens; then checks that nothing is lost, repeated or stuck. */
const undisturbed = async ({ api, cluster }: Context, during: () => Promise<void>): Promise<void> => {
  const nodes = cluster.nodes('api').map(({ url }) => openApi(url, api.key))
  const followers = await Promise.all(nodes.map((node) => follow(node, '/env/subscribe')))
  const work: Event[] = []
  const flaky: Event[] = []
  const over = new AbortController()
  const client = async (node: Api) => {
    while (!over.signal.aborted) {
      work.push(await publish(node, 'work', 20))
      flaky.push(await publish(node, 'flaky'))
      await delay(400) // a read-model server that scans must keep up
    }
  }
  const clients = Promise.all(nodes.map(client))
  clients.catch(() => over.abort()) // reported below
  const ticksBefore = (await allOf<Run>(api, '/runs?type=schedule')).length
  try {
    await during()
    const enough = work.length + 4
    await until(() => work.length >= enough, PATIENT)
  } finally {
    over.abort() // else a read-model server that scans might never catch up on a slow machine
  }
  await clients // each publication was acknowledged, although Redis was away
  await until(async () => (await allOf<Run>(api, '/runs?type=schedule')).length > ticksBefore + 4, PATIENT)
  assert.ok(work.length > 4, `${work.length} events`)

  await until(async () => {
    const runs = Map.groupBy(await allOf<Run>(api, '/runs?type=event'), ({ event_id }) => event_id)
    for (const { event_id } of work) isExact(runs.get(event_id) ?? [])
    for (const { event_id } of flaky)
      assert.equal(
        (runs.get(event_id) ?? [])
          .map(({ attempt, status }) => [attempt, status])
          .sort(([a], [b]) => Number(a) - Number(b)),
        [
          [1, 'failed'],
          [2, 'succeeded'],
        ],
      )
    return true
  }, PATIENT)
  const ids = [...work, ...flaky].map(({ event_id }) => event_id).sort()
  for (const follower of followers) {
    await until(() => createdIn(follower).length >= ids.length, PATIENT)
    assert.equal(createdIn(follower).sort(), ids)
    follower.close()
  }
  const at = await tickResults(api)
  assert.is(new Set(at).size, at.length, `a tick fired twice: ${JSON.stringify(at)}`)
}

const title = 'a cluster whose Redis'
const redis = namedUrl('redis')
if (redis !== null && hasClusterEngines()) {
  const away = suite<Context>(title, { timeoutMs: 240_000 + OUTAGE_MS })
  away.before(async (context) => void Object.assign(context, await open(redis)))
  away.after(({ stop }) => stop())

  away('cannot be reached by half of the nodes loses, repeats and delays nothing', (context) =>
    undisturbed(context, async () => {
      context.proxies[0].blackhole()
      await delay(OUTAGE_MS)
      await context.proxies[0].heal()
    }),
  )

  away('starts again without its memory loses, repeats and delays nothing', (context) =>
    undisturbed(context, async () => {
      for (const proxy of context.proxies) proxy.refuse()
      await delay(2000)
      await empty(redis)
      for (const proxy of context.proxies) await proxy.heal()
    }),
  )

  away.run()
} else notHere(title, 'it needs SVC_TEST_REDIS, SVC_TEST_MONGODB and SVC_TEST_S3')
