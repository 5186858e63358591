import { MongoClient } from 'mongodb'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { START } from '../../src/events/event.ts'
import { readConfig } from '../../src/process/config.ts'
import { deploy, publish, type Run } from '../support/build.ts'
import { namedUrl } from '../support/engines.ts'
import { hostOf } from '../support/engineProxies.ts'
import { openFaultProxy } from '../support/faultProxy.ts'
import { installation, realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, standInForEventStore } from '../support/openCluster.ts'
import { openLog } from '../support/openLog.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** A silent worker is declared lost after 6 s. */
const PATIENT = { timeoutMs: 60_000, everyMs: 100 }
/** A worker that could take the run again has taken it after this time. */
const UNTAKEN_MS = 3000

const JOBS = `
import { setTimeout } from 'node:timers/promises'
import { currentRun, fn } from 'svc'
export const long = fn({ 'on-event': 'work' }, async ({ data }) => {
  if (data === 7 && currentRun().attempt === 1) await setTimeout(600_000)
  return data
})
export const pause = fn({ 'on-event': 'pause', timeout: 600_000 }, ({ data }) => setTimeout(data))
`

/** A node with the worker alone, which reaches MongoDB through a proxy, and a node with the other roles. */
const openNodes = async () => {
  const standIn = await standInForEventStore()
  const env = realEngines(tempDir(), namedUrl)
  const readModels = env['SVC_READ_MODELS'] ?? ''
  const proxy = await openFaultProxy(hostOf(readModels, 27_017))
  const others = await startServer({ env: { ...env, SVC_ROLES: 'api,projector,saga' } })
  const worker = await startServer({
    env: { ...env, SVC_READ_MODELS: proxy.url(readModels), SVC_ROLES: 'worker' },
  })
  const client = new MongoClient(readModels)
  const { store } = await openLog(readConfig(installation(tempDir(), env)))
  return {
    others,
    proxy,
    store,
    client,
    async close() {
      await client.close()
      await worker.stop()
      await others.stop()
      await store.close()
      await proxy.close()
      await standIn?.stop()
    },
  }
}

/** Two projecting nodes: the first one works, and reaches the event store through a proxy. */
const openProjectors = async () => {
  const standIn = await standInForEventStore()
  const env = realEngines(tempDir(), namedUrl)
  const eventStore = env['SVC_EVENT_STORE'] ?? ''
  const proxy = await openFaultProxy(hostOf(eventStore, 2113))
  const first = await startServer({
    env: { ...env, SVC_EVENT_STORE: proxy.url(eventStore), SVC_ROLES: 'projector' },
  })
  const others = await startServer({ env: { ...env, SVC_ROLES: 'api' } })
  const second = await startServer({ env: { ...env, SVC_ROLES: 'projector' } })
  return {
    api: others.api,
    proxy,
    async close() {
      await second.stop()
      await others.stop()
      await first.stop()
      await proxy.close()
      await standIn?.stop()
    },
  }
}

const title = 'a worker that is cut off from MongoDB alone'
if (!hasClusterEngines()) {
  notHere(title, 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const away = suite('a projecting node that is cut off from the event store alone', { timeoutMs: 180_000 })

  away('leaves its work to another one', async () => {
    const { api, proxy, close } = await openProjectors()
    const { event_id } = await publish(api, 'noted', 1)
    const idsOf = async () =>
      (await api.get<{ event_id: string }[]>('/events')).map((event) => event.event_id)
    assert.equal(await idsOf(), [event_id])
    proxy.refuse()
    const later = await publish(api, 'noted', 2)
    await until(async () => (await idsOf()).includes(later.event_id), PATIENT)
    await proxy.heal()
    await close()
  })

  away.run()

  const cut = suite(title, { timeoutMs: 180_000 })

  /** The heartbeats of workers: their counts, by id. */
  const beatsOf = async (client: MongoClient) => {
    const stored = client.db().collection<{ _id: string; last: { doc: string | null } }>('beats__v1')
    const beats = new Map<string, number>()
    for (const { _id, last } of await stored.find().toArray()) {
      const beat = JSON.parse(last.doc ?? 'null') as { readonly count: number; readonly id?: string } | null
      if (beat && beat.id === undefined) beats.set(_id, beat.count)
    }
    return beats
  }

  cut('is lost once, and takes nothing until its heartbeats are stored again', async () => {
    const { others, proxy, store, client, close } = await openNodes()
    const { api, url } = others
    const ending = new AbortController()
    const lives: string[] = []
    const ids: string[] = []
    const types = ['WorkerStarted', 'WorkerLost'] as const
    const following = (async () => {
      for await (const { events } of store.subscribe({ after: START, types, signal: ending.signal }))
        for (const { event } of events) {
          lives.push(event.type)
          if (event.type === 'WorkerStarted') ids.push(event.worker_id)
        }
    })()
    await deploy(api, 'jobs', { 'jobs.js': JOBS })
    await publish(api, 'work', 7)
    const runs = () => api.get<Run[]>('/runs?type=event')
    await until(async () => (await runs()).length === 1, PATIENT)
    proxy.refuse()
    await until(() => lives.length === 2, PATIENT)
    await until(async () => {
      const { oldest_untaken_event_ms } = (await (await fetch(`${url}/readyz`)).json()) as {
        oldest_untaken_event_ms: number
      }
      return oldest_untaken_event_ms >= UNTAKEN_MS
    }, PATIENT)
    assert.equal(lives, ['WorkerStarted', 'WorkerLost'])
    await proxy.heal()
    const again = await until(
      async () => (await runs()).find(({ status }) => status === 'succeeded'),
      PATIENT,
    )
    assert.equal([again.attempt, again.result], [2, 7])
    await until(() => lives.length > 2)
    assert.equal(lives, ['WorkerStarted', 'WorkerLost', 'WorkerStarted'])
    assert.is(ids.length, 2)
    const [former = '', present = ''] = ids
    const count = await until(async () => (await beatsOf(client)).get(present), PATIENT)
    const later = await until(async () => {
      const beats = await beatsOf(client)
      return (beats.get(present) ?? 0) > count + 2 ? beats : null
    }, PATIENT)
    assert.not(later.has(former), 'a worker that has another id does not beat under its former one')
    ending.abort()
    await following
    await close()
  })

  cut.run()

  const alone = suite('a worker that is cut off from the event store alone', { timeoutMs: 300_000 })
  /** It counts as silent after a minute. */
  const LATER = { timeoutMs: 180_000, everyMs: 100 }
  /** A worker is silent after a minute, and lost 6 s later. */
  const OUTAGE_MS = 75_000

  alone('is lost after a minute, and its run starts again on another one', async () => {
    const standIn = await standInForEventStore()
    const env = realEngines(tempDir(), namedUrl)
    const eventStore = env['SVC_EVENT_STORE'] ?? ''
    const proxy = await openFaultProxy(hostOf(eventStore, 2113))
    const others = await startServer({ env: { ...env, SVC_ROLES: 'api,projector,saga' } })
    const { api } = others
    const first = await startServer({
      env: { ...env, SVC_EVENT_STORE: proxy.url(eventStore), SVC_ROLES: 'worker' },
    })
    await deploy(api, 'jobs', { 'jobs.js': JOBS })
    await publish(api, 'work', 7)
    const runs = () => api.get<Run[]>('/runs?type=event')
    await until(async () => (await runs()).some(({ status }) => status === 'running'), PATIENT)
    const second = await startServer({ env: { ...env, SVC_ROLES: 'worker' } })
    proxy.refuse()
    const again = await until(async () => (await runs()).find(({ status }) => status === 'succeeded'), LATER)
    assert.equal([again.attempt, again.result], [2, 7])
    await second.stop()
    await proxy.heal()
    await publish(api, 'work', 8)
    const next = await until(async () => (await runs()).find(({ result }) => result === 8), PATIENT)
    assert.is(next.attempt, 1)
    await first.stop()
    await others.stop()
    await proxy.close()
    await standIn?.stop()
  })

  alone('is not lost if the event store was away from all nodes for more than a minute', async () => {
    const standIn = await standInForEventStore()
    const env = realEngines(tempDir(), namedUrl)
    const proxy = await openFaultProxy(hostOf(env['SVC_EVENT_STORE'] ?? '', 2113))
    const through = { ...env, SVC_EVENT_STORE: proxy.url(env['SVC_EVENT_STORE'] ?? '') }
    const others = await startServer({ env: { ...through, SVC_ROLES: 'api,projector,saga' } })
    const worker = await startServer({ env: { ...through, SVC_ROLES: 'worker' } })
    const { api } = others
    await deploy(api, 'jobs', { 'jobs.js': JOBS })
    await publish(api, 'pause', OUTAGE_MS + 30_000) // it ends when a silent worker would have been lost
    const runs = () => api.get<Run[]>('/runs?type=event')
    await until(async () => (await runs()).some(({ status }) => status === 'running'), PATIENT)
    const began = clock.monotonic()
    proxy.refuse()
    await until(() => clock.monotonic() - began >= OUTAGE_MS, LATER)
    await proxy.heal()
    const ended = await until(
      async () => (await runs().catch(() => [])).find(({ status }) => status !== 'running'),
      LATER,
    )
    assert.equal([ended.status, ended.attempt], ['succeeded', 1])
    await worker.stop()
    await others.stop()
    await proxy.close()
    await standIn?.stop()
  })

  alone.run()
}
