import * as assert from 'uvu/assert'
import { deploy, publish, type Run } from '../support/build.ts'
import { allOf, isLost } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { PATIENCE } from '../support/patience.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Real engines may scan all runs for each query, so fewer are started on them: several parts, for which there may be room at once. */
const areFew = PATIENCE > 1
/** More than the service claims at once, if they are not few: the others wait until there is room. */
const HANDLERS = areFew ? 600 : 2600

/** Handlers that wait until the environment has a file. */
const FUNCTIONS = `
import { setTimeout } from 'node:timers/promises'
import { files, fn } from 'svc'
const exists = () => files.get('go').then(() => true, () => false)
let waiting
const wait = async () => { while (!(await exists())) await setTimeout(200) }
const handle = async () => { await (waiting ??= wait()) }
${Array.from({ length: HANDLERS }, (_, n) => `export const f${n} = fn({ 'on-event': 'many', timeout: 600000 }, handle)`).join('\n')}
`

const totalOf = async (api: Api, path: string): Promise<number> =>
  (await api.page(`${path}${path.includes('?') ? '&' : '?'}limit=1`)).pagination.total

const patient = { timeoutMs: 120_000 * PATIENCE, everyMs: 500 }

const many = suite('a service that is killed while it claims the runs of an event in parts', {
  timeoutMs: 300_000,
})

many('starts each of its handlers once, and again if its run was lost (I3)', async () => {
  const dataDir = tempDir()
  const killed = await spawnServer({ dataDir })
  await deploy(killed.api, 'many', { 'jobs.js': FUNCTIONS })
  const { event_id } = await publish(killed.api, 'many')
  const runs = `/events/${event_id}/runs`
  await until(async () => (await totalOf(killed.api, runs)) > 0, patient)
  await killed.end('SIGKILL')
  const { api, stop } = await spawnServer({ dataDir })
  assert.is((await api.send('PUT', '/files/upload/go', { body: 'go' })).status, 200)
  await until(
    async () =>
      (await totalOf(api, runs)) >= HANDLERS &&
      (await totalOf(api, '/runs?status=running')) + (await totalOf(api, '/runs?status=pending_retry')) === 0,
    patient,
  )
  const chains = Map.groupBy(await allOf<Run>(api, runs), ({ fn }) => fn)
  assert.is(chains.size, HANDLERS)
  let lost = 0
  for (const chain of chains.values()) {
    const [last, ...before] = chain.toSorted((a, b) => b.attempt - a.attempt)
    assert.equal([last?.attempt, last?.status], [chain.length, 'succeeded'])
    assert.ok(before.every(isLost))
    lost += before.length
  }
  assert.ok(
    lost > 0 && (lost < HANDLERS || areFew),
    `${lost} runs were lost; the others were claimed after the restart`,
  )
  await stop()
})

many.run()
