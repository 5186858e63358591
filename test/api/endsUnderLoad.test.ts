import * as assert from 'uvu/assert'
import { deploy, type Event } from '../support/build.ts'
import {
  beganTwice,
  chainsOf,
  described,
  disturbed,
  LOADED,
  publishUntil,
  settled,
} from '../support/endedUnderLoad.ts'
import { PATIENCE } from '../support/patience.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Events that are acknowledged before the signal. */
const LOAD = 60
const CLIENTS = 12
/** A read-model server that scans must keep up. */
const PAUSE_MS = PATIENCE > 1 ? 300 : 0

interface Context {
  server: ServerProcess
  acknowledged: Event[]
}

/** Publishes until the service is gone, which gets the signal under load. */
const endUnderLoad = async (context: Context, signal: NodeJS.Signals): Promise<unknown> => {
  const { server, acknowledged } = context
  const enough = acknowledged.length + LOAD
  const over = new AbortController()
  const publishing = publishUntil(
    { api: server.api, clients: CLIENTS, acknowledged, pauseMs: PAUSE_MS },
    over.signal,
  )
  await until(() => acknowledged.length >= enough)
  const code = await server.end(signal)
  over.abort()
  await publishing
  context.server = await spawnServer({ dataDir: server.dataDir })
  return code
}

const load = suite<Context>('a service that ends under load', { timeoutMs: 120_000 })

load.before.each(async (context) => {
  const server = await spawnServer({ dataDir: tempDir() })
  await deploy(server.api, 'work', { 'jobs.js': LOADED })
  Object.assign(context, { server, acknowledged: [] })
})
load.after.each(({ server }) => server.stop())

load('by SIGTERM loses no run: each one succeeds, in its first attempt', async (context) => {
  for (let n = 0; n < 3; n++) assert.is(await endUnderLoad(context, 'SIGTERM'), 0)
  const { api } = context.server
  await settled(api, context.acknowledged)
  assert.equal(await disturbed(api, context.acknowledged), [])
})

load('by SIGKILL starts lost runs again until they succeed, and those with `once` never', async (context) => {
  for (let n = 0; n < 2; n++) assert.is(await endUnderLoad(context, 'SIGKILL'), 'SIGKILL')
  const { api } = context.server
  await settled(api, context.acknowledged)
  const chains = await chainsOf(api)
  let lost = 0
  for (const { event_id } of context.acknowledged) {
    for (const name of ['plain', 'parent']) {
      const chain = chains.get(`${event_id} jobs/${name}`) ?? []
      lost += chain.length - 1
      assert.is(chain.at(-1)?.status, 'succeeded', described(chain))
      assert.ok(
        chain.slice(0, -1).every(({ error }) => error?.code === 'worker_lost'),
        described(chain),
      )
    }
    const single = chains.get(`${event_id} jobs/single`) ?? []
    assert.is(single.length, 1, described(single))
    const [{ status, error } = { status: 'failed', error: undefined }] = single
    assert.ok(status === 'succeeded' || error?.code === 'worker_lost', described(single))
  }
  assert.ok(lost > 0, 'no run was lost: the service was killed at rest')
  assert.equal(await beganTwice(api), [])
})

load.run()
