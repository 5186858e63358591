import * as assert from 'uvu/assert'
import {
  deploy,
  type Event,
  handled,
  type Project,
  publish,
  type Run,
  type Webhook,
} from '../support/build.ts'
import { PATIENCE } from '../support/patience.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

/** Fewer for a read-model server that scans. */
const TIMES = PATIENCE > 1 ? 20 : 200

const server = await startServer()
const { api } = server
await deploy(api, 'work', {
  'jobs.js': `import { fn } from 'svc'
export const hook = fn({ webhook: { service: 'hooks', path: '/echo' } }, ({ body }) => body)
export const work = fn({ 'on-event': 'work' }, () => 'worked')`,
})
const [{ url }] = (await api.page<Webhook>('/projects/work/webhooks')).data as [Webhook]

/** Some at a time, so that reads meet the writes of others on their way. */
const often = async (times: number, act: (n: number) => Promise<void>): Promise<void> => {
  let n = 0
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (n < times) await act(n++)
    }),
  )
}

const reading = suite('what was acknowledged is seen by the next request (I2)', { timeoutMs: 60_000 })

reading('a project, by name and in the list, until it is deleted', () =>
  often(TIMES, async (n) => {
    const created = await api.post<Project>('/projects', { name: `p${n}` })
    assert.equal(await api.get(`/projects/p${n}`), created)
    assert.ok((await api.page<Project>('/projects')).data.some(({ name }) => name === `p${n}`))
    const renamed = await api.patch<Project>(`/projects/p${n}`, { name: `renamed${n}` })
    assert.equal(await api.get(`/projects/renamed${n}`), renamed)
    assert.is((await api.send('GET', `/projects/p${n}`)).status, 404)
    await api.remove(`/projects/renamed${n}`)
    assert.is((await api.send('GET', `/projects/renamed${n}`)).status, 404)
    assert.not((await api.page<Project>('/projects')).data.some(({ name }) => name === `renamed${n}`))
  }),
)

reading('an event, by id and in the list', () =>
  often(TIMES, async (n) => {
    const event = await publish(api, `unheard${n % 2}`, n)
    assert.equal(await api.get(`/events/${event.event_id}`), event)
    const { data } = await api.page<Event>(`/events?event_type=unheard${n % 2}&limit=50`)
    assert.ok(data.some(({ event_id }) => event_id === event.event_id))
  }),
)

reading('the run of a webhook, once it has answered', () =>
  often(TIMES, async (n) => {
    const { json } = await api.send('POST', url, { body: { n } })
    assert.equal(json, { n })
    const { data } = await api.page<Run>('/runs?status=succeeded&limit=50')
    assert.ok(data.some(({ result }) => (result as { n?: number } | null)?.n === n))
  }),
)

reading('a deployed handler, by the event that follows', () =>
  often(10, async (n) => {
    await deploy(api, `d${n}`, {
      [`d${n}.js`]: `import { fn } from 'svc'\nexport const on = fn({ 'on-event': 'd${n}' }, () => ${n})`,
    })
    const { event_id } = await publish(api, `d${n}`)
    assert.equal(
      (await handled(api, event_id)).map(({ result }) => result),
      [n],
    )
  }),
)

reading('a deployed webhook, by the call that follows', () =>
  often(10, async (n) => {
    await deploy(api, `w${n}`, {
      [`w${n}.js`]: `import { fn } from 'svc'
export const hook = fn({ webhook: { service: 'new', path: '/w${n}' } }, () => ${n})`,
    })
    const [webhook] = (await api.page<Webhook>(`/projects/w${n}/webhooks`)).data
    assert.is((await api.send('POST', webhook?.url ?? '')).json, n)
  }),
)

reading('statistics that add up, whenever they are asked for', async () => {
  const { total_runs: before } = await api.get<{ total_runs: number }>('/runs/stats')
  await often(TIMES, async () => void (await handled(api, (await publish(api, 'work')).event_id)))
  const stats = await api.get<Record<string, number>>('/runs/stats')
  assert.equal([stats['total_runs'], stats['running']], [before + TIMES, 0])
})

reading.after(() => server.stop())
reading.run()
