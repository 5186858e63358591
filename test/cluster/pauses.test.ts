import * as assert from 'uvu/assert'
import type { Role } from '../../src/process/config.ts'
import { newId } from '../../src/ids.ts'
import { follow } from '../api/sse.ts'
import { deploy, type Event, publish, type Run } from '../support/build.ts'
import type { Cluster } from '../support/cluster.ts'
import { allOf, tickResults } from '../support/exactRuns.ts'
import { type Answer, type Api, openApi } from '../support/http.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, openCluster, type OpenCluster } from '../support/openCluster.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** A paused node counts as lost after 6 s, and its runs start again after that. */
const PATIENT = { timeoutMs: 60_000, everyMs: 200 }

const JOBS = `
import { setTimeout } from 'node:timers/promises'
import { currentRun, fn, send } from 'svc'
const work = async ({ data }) => { await setTimeout(data.ms); await send('late', data.n); return data.n }
export const plain = fn({ 'on-event': 'work' }, work)
export const single = fn({ 'on-event': 'work', once: true }, work)
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 1, delay: 2 } }, ({ data }) => {
  if (currentRun().attempt === 1) throw new Error('the first attempt')
  return data
})
`
const TICKS = `
import { fn } from 'svc'
export const secondly = fn({ schedule: '* * * * * *' }, ({ data }) => data.scheduled_time)
`

/** Pauses a node like a machine that is suspended, until the work is done. */
const whilePaused = async <T>(
  cluster: Cluster,
  role: Role,
  n: number,
  work: () => Promise<T>,
): Promise<T> => {
  const node = cluster.nodes(role)[n]
  assert.ok(node)
  node.process.kill('SIGSTOP')
  try {
    return await work()
  } finally {
    node.process.kill('SIGCONT')
  }
}

const chainsOf = async (api: Api, events: readonly Event[]): Promise<Run[][]> => {
  const runs = Map.groupBy(
    await allOf<Run>(api, '/runs?type=event'),
    ({ event_id, fn }) => `${event_id} ${fn}`,
  )
  const ids = new Set(events.map(({ event_id }) => event_id))
  return [...runs.values()]
    .filter(([run]) => ids.has(run?.event_id ?? ''))
    .map((chain) => chain.sort((a, b) => a.attempt - b.attempt))
}

/** A lost run starts again, unless its function has `once`; its next attempt is listed when a worker has claimed it. */
const hasEnded = (chain: readonly Run[]): boolean => {
  const last = chain.at(-1)
  return last?.status === 'succeeded' || (last?.status === 'failed' && last.fn === 'jobs/single')
}

const allOver = (api: Api, events: readonly Event[], handlers: number): Promise<Run[][]> =>
  until(async () => {
    const chains = await chainsOf(api, events)
    return chains.length === events.length * handlers && chains.every(hasEnded) ? chains : undefined
  }, PATIENT)

const title = 'a node that is paused for longer than the others wait for it'
if (!hasClusterEngines()) {
  notHere(title, 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const paused = suite<OpenCluster>(title, { timeoutMs: 300_000 })
  paused.before(async (context) => {
    Object.assign(context, await openCluster())
    await deploy(context.api, 'jobs', { 'jobs.js': JOBS })
  })
  paused.after(({ stop }) => stop())

  paused('keeps no event waiting that was delivered to it', async ({ cluster, api }) => {
    const events: Event[] = []
    const chains = await whilePaused(cluster, 'worker', 0, async () => {
      for (let n = 0; n < 16; n++) events.push(await publish(api, 'flaky', n))
      return allOver(api, events, 1)
    })
    for (const { length } of chains) assert.is(length, 2)
  })

  paused('repeats no tick and no retry of the sagas that went on without it', async ({ cluster, api }) => {
    await deploy(api, 'ticks', { 'ticks.js': TICKS })
    const ticks = async () => allOf<Run>(api, '/runs?type=schedule')
    for (const n of [0, 1]) {
      const before = (await ticks()).length
      const events: Event[] = []
      await whilePaused(cluster, 'saga', n, async () => {
        for (let m = 0; m < 5; m++) events.push(await publish(api, 'flaky', m))
        await until(async () => (await ticks()).length >= before + 8, PATIENT)
        const chains = await allOver(api, events, 1)
        for (const chain of chains)
          assert.equal(
            chain.map(({ attempt, status }) => [attempt, status]),
            [
              [1, 'failed'],
              [2, 'succeeded'],
            ],
          )
      })
      const resumed = (await ticks()).length
      await until(async () => (await ticks()).length >= resumed + 4, PATIENT)
      assert.equal(
        (await chainsOf(api, events)).map(({ length }) => length),
        [2, 2, 2, 2, 2],
      )
    }
    await api.remove('/projects/ticks')
    const at = await tickResults(api)
    assert.is(new Set(at).size, at.length, `a tick fired twice: ${JSON.stringify(at)}`)
  })

  paused('leaves the read models whole: totals are those of the lists', async ({ cluster, api }) => {
    for (const n of [0, 1]) {
      const events: Event[] = []
      await whilePaused(cluster, 'projector', n, async () => {
        for (let m = 0; m < 20; m++) events.push(await publish(api, 'work', { n: 1000 + m, ms: 5 }))
        await allOver(api, events, 2)
      })
      await allOver(api, [await publish(api, 'work', { n: 2000, ms: 5 })], 2)
    }
    await until(async () => {
      const stats = await api.get<Record<string, number>>('/runs/stats')
      for (const status of ['succeeded', 'failed'] as const) {
        const listed = await allOf<Run>(api, `/runs?status=${status}`)
        const { total } = (await api.page(`/runs?status=${status}&limit=1`)).pagination
        assert.equal([total, stats[status]], [listed.length, listed.length], status)
        assert.is(new Set(listed.map(({ run_id }) => run_id)).size, listed.length)
      }
      return true
    }, PATIENT)
  })

  paused(
    'answers a keyed request that another node took over with the same reply',
    async ({ cluster, api }) => {
      const nodes = cluster.nodes('api').map(({ url }) => openApi(url, api.key))
      const [first, second] = nodes as [Api, Api]
      const replies: Promise<Answer>[] = []
      const keys = Array.from({ length: 6 }, () => newId())
      const send = (to: Api, key: string) =>
        to.send('POST', '/events', {
          body: { event_type: 'keyed', event_data: key },
          headers: { 'Idempotency-Key': key },
        })
      for (const key of keys) replies.push(send(first, key))
      const taken = await whilePaused(cluster, 'api', 0, async () =>
        Promise.all(
          keys.map((key) =>
            until(async () => {
              const answer = await send(second, key)
              if (answer.status === 201) return answer
              assert.ok([409, 503].includes(answer.status), `${answer.status} ${answer.text}`)
              return undefined
            }, PATIENT),
          ),
        ),
      )
      const idOf = ({ json }: Answer) => (json as { data?: Event }).data?.event_id
      for (const [n, late] of (await Promise.all(replies)).entries()) {
        if (late.status === 201) assert.is(idOf(late), idOf(taken[n] as Answer))
        else assert.ok([409, 503].includes(late.status), `${late.status} ${late.text}`)
        assert.is(idOf(await send(first, keys[n] ?? '')), idOf(taken[n] as Answer))
      }
      const stored = await allOf<Event>(api, '/events?event_type=keyed')
      assert.equal(stored.map(({ event_id }) => event_id).sort(), taken.map(idOf).sort())
    },
  )

  paused('costs a named consumer no event', async ({ cluster, api }) => {
    const nodes = cluster.nodes('api').map(({ url }) => openApi(url, api.key))
    const followers = await Promise.all(nodes.map((node) => follow(node, '/env/subscribe?consumer=pair')))
    const seen = (n: number) =>
      followers[n]?.seen.flatMap(({ event, data }) =>
        event === 'event:created' ? [String(data['event_id'])] : [],
      ) ?? []
    const events: Event[] = []
    const more = async () => {
      for (let n = 0; n < 10; n++) events.push(await publish(nodes[1] as Api, 'shared', n))
    }
    await until(async () => {
      await more() // what is published before a node has joined the consumer goes to the other one
      return seen(0).length > 0 && seen(1).length > 0
    }, PATIENT)
    const missing = () => {
      const all = new Set([...seen(0), ...seen(1)])
      return events.filter(({ event_id }) => !all.has(event_id)).length
    }
    const before = seen(1).length
    await whilePaused(cluster, 'api', 0, async () => {
      await more()
      await until(() => seen(1).length > before, PATIENT)
    })
    await more()
    await until(() => missing() === 0, PATIENT)
    for (const follower of followers) follower.close()
  })

  paused.run()
}
