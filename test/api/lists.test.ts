import * as assert from 'uvu/assert'
import { startServer } from '../support/server.ts'
import { publish } from '../support/build.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api } = server

const pages = suite('a list')

pages('is returned in pages with the total and a flag for further pages', async () => {
  const all: string[] = []
  for (let n = 0; n < 5; n++) all.unshift((await publish(api, 'paged', n)).event_id)
  const page = async (query: string) => {
    const { data, pagination } = await api.page<{ event_id: string }>(`/events?event_type=paged&${query}`)
    const { next, ...counts } = pagination
    return [data.map(({ event_id }) => all.indexOf(event_id)), { ...counts, ...(next && { next: true }) }]
  }
  assert.equal(await page(''), [[0, 1, 2, 3, 4], { total: 5, limit: 20, offset: 0, has_more: false }])
  assert.equal(await page('limit=2'), [[0, 1], { total: 5, limit: 2, offset: 0, has_more: true, next: true }])
  assert.equal(await page('limit=2&offset=2'), [
    [2, 3],
    { total: 5, limit: 2, offset: 2, has_more: true, next: true },
  ])
  assert.equal(await page('limit=2&offset=4'), [[4], { total: 5, limit: 2, offset: 4, has_more: false }])
  assert.equal(await page('limit=100&offset=9'), [[], { total: 5, limit: 100, offset: 9, has_more: false }])
})

pages('of events continues where the page ended, whatever is published meanwhile', async () => {
  const ids: string[] = []
  const send = async (n: number) => void ids.unshift((await publish(api, 'continued', n)).event_id)
  for (let n = 0; n < 3; n++) await send(n)
  const page = (more: string) => api.page<{ event_id: string }>(`/events?event_type=continued&limit=2${more}`)
  const first = await page('')
  await send(3)
  const second = await page(`&before=${first.pagination.next}`)
  assert.equal(
    [...first.data, ...second.data].map(({ event_id }) => event_id),
    ids.slice(1),
  )
  assert.equal(second.pagination, { total: 1, limit: 2, offset: 0, has_more: false })
  assert.equal((await page('&before=1999-12-31')).data, [])
  const { status, message } = await api.refused('GET', '/events?before=yesterday')
  assert.is(status, 400)
  assert.match(message, 'before: expected an ISO 8601 time')
})

const LISTS = [
  '/projects',
  '/builds',
  '/events',
  '/runs',
  '/projects/p/builds',
  '/projects/p/event-handlers',
  '/projects/p/schedules',
  '/projects/p/webhooks',
]
for (const path of LISTS) {
  pages(`respects its bounds: ${path}`, async () => {
    await api.send('POST', '/projects', { body: { name: 'p' } })
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=-1',
      'limit=abc',
      'limit=1.5',
      'limit=',
      'limit=1&limit=2',
      'limit=1e1',
      'offset=-1',
      'offset=x',
      'offset=99999999999999999999',
    ]) {
      const { status, code, message } = await api.refused('GET', `${path}?${query}`)
      assert.equal([status, code], [400, 'bad_request'], query)
      assert.ok(message.startsWith(`${query.split('=')[0]}: `), `${query}: ${message}`)
    }
    for (const query of ['limit=1', 'limit=100', 'offset=0', 'offset=1000000']) {
      assert.is((await api.send('GET', `${path}?${query}`)).status, 200, query)
    }
  })

  pages(`names an unknown parameter: ${path}`, async () => {
    for (const name of ['colour', 'Limit', '__proto__', 'constructor']) {
      const { status, message } = await api.refused('GET', `${path}?${name}=1`)
      assert.is(status, 400)
      assert.ok(message.startsWith(`${name}: `), message)
    }
  })
}

pages.after(() => server.stop())
pages.run()
