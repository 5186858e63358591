import * as assert from 'uvu/assert'
import { deploy, type Event, handled, publish, type Webhook } from '../support/build.ts'
import { PATIENCE } from '../support/patience.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

/** Fewer for a read-model server that scans, beside other tests. */
const TIMES = PATIENCE > 1 ? 8 : 30

const server = await startServer()
const { api } = server
await deploy(api, 'work', {
  'jobs.js': `import { currentRun, fn, run, send } from 'svc'
const executed = (kind, n) => send('executed', [kind, n, currentRun().attempt].join(' '))
export const hook = fn({ webhook: { service: 'once', path: '/hook' } }, ({ body }) => executed('webhook', body.n))
export const work = fn({ 'on-event': 'work' }, ({ data }) => executed('event', data))
export const again = fn({ 'on-event': 'again', retry: { attempts: 1, delay: 1 } }, async ({ data }) => {
  await executed('retry', data)
  if (currentRun().attempt === 1) throw new Error('once more')
})
export const child = (n) => executed('child', n)
export const parent = fn({ 'on-event': 'parent' }, ({ data }) => run('jobs/child', data))`,
})
const [{ url }] = (await api.page<Webhook>('/projects/work/webhooks')).data as [Webhook]

const once = suite('a run is executed once (I3)')

/** Counts executions, because the facts of a run are the same when two workers executed it. */
once('on every path that starts runs', async () => {
  const numbers = Array.from({ length: TIMES }, (_, n) => n)
  const handle = async (type: string, n: number, runs: number) =>
    handled(api, (await publish(api, type, n)).event_id, runs)
  await Promise.all([
    ...numbers.map(async (n) => assert.is((await api.send('POST', url, { body: { n } })).status, 200)),
    ...numbers.map((n) => handle('work', n, 1)),
    ...numbers.map((n) => handle('again', n, 2)),
    ...numbers.map((n) => handle('parent', n, 1)),
  ])
  const told: unknown[] = []
  for (let offset = 0; ; offset += 100) {
    const { data } = await api.page<Event>(`/events?event_type=executed&limit=100&offset=${offset}`)
    told.push(...data.map(({ event_data }) => event_data))
    if (data.length < 100) break
  }
  const expected = numbers.flatMap((n) => [
    `webhook ${n} 1`,
    `event ${n} 1`,
    `retry ${n} 1`,
    `retry ${n} 2`,
    `child ${n} 1`,
  ])
  assert.equal(told.toSorted(), expected.toSorted())
})

once.after(() => server.stop())
once.run()
