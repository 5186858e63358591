import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { call, deploy, handle, handled, publish, type Run, type Webhook } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { JOBS } from './jobs.ts'

const server = await startWithOther()
const { api, other } = server
const { project_id } = await deploy(api, 'work', { 'jobs.js': JOBS })
const { project_id: shop_id } = await deploy(api, 'shop', {
  'shop.js': 'export const sell = () => { throw new Error("Sold Out") }',
})

const failed = await handle(api, 'fails')
const sum = await call(api, 'jobs/add', 1, 2)
const sold = await call(api, 'shop/sell')
const { event_id } = await publish(api, 'hopeless')
const [third, second, first] = (await handled(api, event_id, 3)) as [Run, Run, Run]
const ALL = [third, second, first, sold, sum, failed]

const search = suite('a search of runs')

const found = async (query: string, as = api) => (await as.page<Run>(`/runs?limit=100&${query}`)).data

for (const [query, expected] of [
  ['project=work', [third, second, first, sum, failed]],
  [`project=${shop_id}`, [sold]],
  ['fn=jobs/add', [sum]],
  ['fn=jobs%2Fhopeless', [third, second, first]],
  [`stream=${sum.stream_id}`, [sum]],
  [`event=${event_id}`, [third, second, first]],
  [`chain=${first.run_id}`, [third, second, first]],
  [`chain=${third.run_id}`, [third, second, first]],
  ['error_code=function_failed', [third, second, first, sold, failed]],
  ['final=true', [third, sold, sum, failed]],
  ['final=false', [second, first]],
  ['status=failed&final=true', [third, sold, failed]],
  ['text=sold%20OUT', [sold]],
  ['text=ADD', [sum]],
  ['text=%25', []],
  ['project=work&status=failed&final=true', [third, failed]],
  ['project=work&fn=jobs/hopeless&error_code=function_failed&final=false&type=event', [second, first]],
  [`chain=${first.run_id}&final=true`, [third]],
  ['project=shop&fn=jobs/add', []],
  [`event=${newId()}`, []],
  [`stream=${newId()}`, []],
  [`chain=${newId()}`, []],
  [`project=${newId()}`, []],
  ['error_code=timeout', []],
  ['before=2020-01-01', []],
  ['fn=jobs/add&time_range=PT1H&before=9999-12-30', [sum]],
] as const) {
  search(`by ${query.replaceAll(/[0-9a-f-]{36}/g, 'ID')}`, async () => {
    assert.equal(await found(query), expected)
    const { next, ...pagination } = (await api.page(`/runs?limit=1&offset=1&${query}`)).pagination
    const { length: total } = expected
    assert.equal(pagination, { total, limit: 1, offset: 1, has_more: total > 2 })
    assert.is(next === undefined, total <= 2)
  })
}

search('finds everything of these filters together', async () => {
  assert.equal(
    await found('final=true'),
    ALL.filter(({ retried_by }) => retried_by === null),
  )
  assert.equal([first.retried_by, second.retried_by, third.retried_by], [second.run_id, third.run_id, null])
})

search('continues after a page although new runs have started', async () => {
  const page = (before: string) => api.page<Run>(`/runs?project=shop&limit=1${before}`)
  const older = await call(api, 'shop/sell')
  const newest = await call(api, 'shop/sell')
  const one = await page('')
  assert.equal(one.data, [newest])
  await call(api, 'shop/sell')
  const two = await page(`&before=${one.pagination.next}`)
  assert.equal(two.data, [older])
  const three = await page(`&before=${two.pagination.next}`)
  assert.equal([three.data, three.pagination.next], [[sold], undefined])
})

search('finds nothing of another environment', async () => {
  for (const query of [
    `stream=${sum.stream_id}`,
    `event=${event_id}`,
    `chain=${first.run_id}`,
    `project=${project_id}`,
    'fn=jobs/add',
    'error_code=function_failed',
    'text=jobs',
    'final=true',
  ])
    assert.equal(await found(query, other), [])
})

search('combines with a past state', async () => {
  const at = sold.stop_time ?? ''
  assert.equal(
    (await found(`fn=jobs/add&as_of=${at}`)).map(({ run_id }) => run_id),
    [sum.run_id],
  )
  assert.equal(await found(`fn=jobs/hopeless&as_of=${sum.start_time}`), [])
  for (const query of ['fn=jobs/add&final=true', 'text=jobs/add', `chain=${sum.run_id}&status=succeeded`])
    assert.equal(
      (await found(`${query}&as_of=${at}`)).map(({ run_id }) => run_id),
      [sum.run_id],
      query,
    )
  assert.equal(
    (await found(`error_code=function_failed&as_of=${sum.start_time}`)).map(({ run_id }) => run_id),
    [failed.run_id],
  )
})

for (const [query, told] of [
  ['project=nothing', 'project: expected the id or name of a project, got "nothing"'],
  ['fn=add', 'fn: expected a function as ns/var, got "add"'],
  ['stream=x', 'stream: expected a UUID, got "x"'],
  ['event=x', 'event: expected a UUID, got "x"'],
  ['chain=x', 'chain: expected a UUID, got "x"'],
  ['final=yes', 'final: expected one of true, false, got "yes"'],
  ['text=', 'text: must not have fewer than 1 characters'],
  ['error_code=', 'error_code: must not have fewer than 1 characters'],
  [`text=${'x'.repeat(201)}`, 'text: must not have more than 200 characters'],
  ['before=yesterday', 'before: expected an ISO 8601 time'],
  ['function=x', 'function: not a parameter of this endpoint'],
] as const) {
  search(`refuses ${query.slice(0, 30)}`, async () => {
    const { status, code, message } = await api.refused('GET', `/runs?${query}`)
    assert.equal([status, code], [400, 'bad_request'])
    assert.match(message, told)
  })
}

search('finds the deliveries of a webhook, the newest first', async () => {
  await deploy(api, 'hooks', {
    'pay.js': `import { fn } from 'svc'
      export const paid = fn({ webhook: { service: 'bank', path: '/paid' } }, ({ body }) => body)`,
  })
  const [webhook] = (await api.page<Webhook>('/projects/hooks/webhooks')).data
  for (const body of [1, 2]) await api.send('POST', webhook?.url ?? '', { body })
  await call(api, 'pay/paid')
  const ofFunction = await found('project=hooks&fn=pay/paid&type=call')
  assert.equal(
    ofFunction.map(({ event_id: sent, result }) => (sent === null ? result : 'called')),
    ['called', 2, 1],
  )
})

search.run()

const times = suite('the times of a run')

times('are in order', () => {
  for (const run of ALL) {
    const order = [run.requested_at, run.start_time, run.claimed_at, run.stop_time ?? '']
    assert.equal(order, order.toSorted())
  }
})

times('of a retry begin when it was due', () => {
  for (const [before, run] of [
    [first, second],
    [second, third],
  ] as const)
    assert.ok(run.requested_at >= (before.stop_time ?? ''), `${run.requested_at} >= ${before.stop_time}`)
})

times.run()

const functions = suite('the functions of a project')

functions('are those of the deployed build, with their triggers', async () => {
  const { data, pagination } = await api.page<{ fn: string }>('/projects/work/functions?limit=100')
  assert.is(pagination.total, data.length)
  const flaky = data.find(({ fn }) => fn === 'jobs/once')
  assert.equal(flaky, {
    build_id: third.build_id,
    fn: 'jobs/once',
    ns: 'jobs',
    var: 'once',
    on_event: 'once',
    retry: { attempts: 0, delay: 1000 },
  })
  assert.ok(data.some(({ fn }) => fn === 'jobs/add'))
  const [page] = (await api.page('/projects/work/functions?limit=1&offset=1')).data
  assert.equal(page, data[1])
})

functions('of the live build are none without one', async () => {
  assert.is((await api.page('/projects/work/functions?build=live')).pagination.total, 0)
  const { message } = await api.refused('GET', '/projects/work/functions?build=old')
  assert.match(message, 'build: expected one of deployed, live, got "old"')
})

functions('of another environment do not exist', async () => {
  assert.is((await other.send('GET', `/projects/${project_id}/functions`)).status, 404)
})

functions.after(() => server.stop())
functions.run()
