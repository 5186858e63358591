import * as assert from 'uvu/assert'
import { deploy, type Event, publish, type Run } from '../support/build.ts'
import { allOf } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const FUNCTIONS = `
import { setTimeout } from 'node:timers/promises'
import { fn, run, send } from 'svc'
export const plain = fn({ 'on-event': 'work' }, async ({ data }) => { await setTimeout(20); return data })
export const single = fn({ 'on-event': 'work', once: true }, async ({ data }) => { await send('began', data); await setTimeout(20); return data })
export const parent = fn({ 'on-event': 'work' }, ({ data }) => run('jobs/child', data))
export const child = async (n) => { await setTimeout(20); return n }
`

/** Events that are acknowledged before the signal. */
const LOAD = 60
const CLIENTS = 12

interface Context {
  server: ServerProcess
  acknowledged: Event[]
}

/** Publishes until the service is gone, which gets the signal under load. */
const endUnderLoad = async (context: Context, signal: NodeJS.Signals): Promise<unknown> => {
  const { server, acknowledged } = context
  const enough = acknowledged.length + LOAD
  let death: Promise<unknown> | undefined
  const client = async () => {
    for (;;) {
      try {
        acknowledged.push(await publish(server.api, 'work', acknowledged.length))
      } catch {
        return // an event without an acknowledgement may be stored or not
      }
      if (acknowledged.length >= enough) death ??= server.end(signal)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  const code = await death
  context.server = await spawnServer({ dataDir: server.dataDir })
  return code
}

/** The runs of functions that events started, by event and function. The newest attempt of each is last. */
const chainsOf = async (api: Api): Promise<Map<string, Run[]>> => {
  const runs = await allOf<Run>(api, '/runs?type=event')
  const chains = Map.groupBy(runs, ({ event_id, fn }) => `${event_id} ${fn}`)
  for (const chain of chains.values()) chain.sort((a, b) => a.attempt - b.attempt)
  return chains
}

const describe = (chain: readonly Run[] = []): string =>
  JSON.stringify(chain.map(({ fn, attempt, status, error }) => [fn, attempt, status, error]))

/** Waits until no run is open. */
const settled = (api: Api): Promise<true> =>
  until(
    async () => {
      for (const status of ['running', 'pending_retry'])
        if ((await api.page(`/runs?status=${status}`)).pagination.total > 0) return undefined
      return true
    },
    { timeoutMs: 30_000, everyMs: 50 },
  )

const beganTwice = async (api: Api): Promise<unknown[]> => {
  const began = (await allOf<Event & { event_data: unknown }>(api, '/events?event_type=began')).map(
    ({ stream_id }) => stream_id,
  )
  return began.filter((stream_id, n) => began.indexOf(stream_id) !== n)
}

const load = suite<Context>('a service that ends under load', { timeoutMs: 120_000 })

load.before.each(async (context) => {
  const server = await spawnServer({ dataDir: tempDir() })
  await deploy(server.api, 'work', { 'jobs.js': FUNCTIONS })
  Object.assign(context, { server, acknowledged: [] })
})
load.after.each(({ server }) => server.stop())

/** Checks that the first attempt of each run has succeeded. */
const allSucceeded = async ({ server: { api }, acknowledged }: Context): Promise<void> => {
  await settled(api)
  const chains = await chainsOf(api)
  for (const { event_id } of acknowledged)
    for (const name of ['plain', 'single', 'parent']) {
      const chain = chains.get(`${event_id} jobs/${name}`)
      const found = chain?.map(({ attempt, status }) => [attempt, status])
      assert.equal(found, [[1, 'succeeded']], describe(chain))
    }
  assert.equal(
    (await allOf<Run>(api, '/runs?status=failed')).map(({ error }) => error),
    [],
  )
  assert.equal(await beganTwice(api), [])
}

load('by SIGTERM loses no run: each one succeeds, in its first attempt', async (context) => {
  for (let n = 0; n < 3; n++) assert.is(await endUnderLoad(context, 'SIGTERM'), 0)
  await allSucceeded(context)
})

load('by SIGKILL starts lost runs again until they succeed, and those with `once` never', async (context) => {
  for (let n = 0; n < 2; n++) assert.is(await endUnderLoad(context, 'SIGKILL'), 'SIGKILL')
  const { api } = context.server
  await settled(api)
  const chains = await chainsOf(api)
  let lost = 0
  for (const { event_id } of context.acknowledged) {
    for (const name of ['plain', 'parent']) {
      const chain = chains.get(`${event_id} jobs/${name}`) ?? []
      lost += chain.length - 1
      assert.is(chain.at(-1)?.status, 'succeeded', describe(chain))
      assert.ok(
        chain.slice(0, -1).every(({ error }) => error?.code === 'worker_lost'),
        describe(chain),
      )
    }
    const single = chains.get(`${event_id} jobs/single`) ?? []
    assert.is(single.length, 1, describe(single))
    const [{ status, error } = { status: 'failed', error: undefined }] = single
    assert.ok(status === 'succeeded' || error?.code === 'worker_lost', describe(single))
  }
  assert.ok(lost > 0, 'no run was lost: the service was killed at rest')
  assert.equal(await beganTwice(api), [])
})

load.run()
