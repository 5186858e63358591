import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { deploy, handled, publish, type Webhook } from '../support/build.ts'
import { parseExposition } from '../support/exposition.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { follow } from './sse.ts'

const env = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }
const server = await startServer({ env })
const { api, url, dataDir } = server
const operator = openApi(url, openSecrets(readConfig(installation(dataDir, env))).operatorToken)

const scrape = async () => {
  const { status, text } = await operator.send('GET', `${url}/metrics`)
  assert.is(status, 200, text)
  return parseExposition(text)
}

const metrics = suite('GET /metrics', { timeoutMs: 60_000 })
metrics.after(() => server.stop())

metrics('returns the text format of Prometheus to the operator', async () => {
  const { headers } = await operator.send('GET', `${url}/metrics`)
  assert.is(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const { kinds, sum } = await scrape()
  assert.is(sum('svc_build_info', { version: 'test' }), 1)
  assert.is(sum('svc_ready'), 1)
  assert.equal([kinds.get('svc_runs_total'), kinds.get('svc_run_duration_seconds')], ['counter', 'histogram'])
})

metrics('contains the delay of the event loop, also at once and for two readers', async () => {
  for (const { sum } of await Promise.all([scrape(), scrape()])) {
    assert.ok(sum('nodejs_eventloop_lag_mean_seconds') > 0)
    assert.ok(sum('nodejs_eventloop_lag_min_seconds') < 3600)
  }
})

metrics('counts runs by type and outcome, with their durations', async () => {
  await deploy(api, 'shop', {
    'f.js': `import { fn } from 'svc'
      export const works = fn({ 'on-event': 'works' }, () => 1)
      export const fails = fn({ 'on-event': 'fails' }, () => { throw new Error('no') })
      export const late = fn({ 'on-event': 'late', timeout: 50 }, () => new Promise(() => {}))
      export const hook = fn({ webhook: { service: 's', path: '/a' } }, () => ({ status: 299, body: 1 }))`,
  })
  for (const type of ['works', 'works', 'fails', 'late'])
    await handled(api, (await publish(api, type)).event_id)
  const [hook] = await api.get<Webhook[]>('/projects/shop/webhooks')
  assert.is((await api.send('POST', hook?.url ?? '')).status, 299)
  const { sum, series } = await until(async () => {
    const found = await scrape()
    return found.sum('svc_runs_total') === 5 ? found : undefined
  })
  for (const [run_type, outcome, count] of [
    ['event', 'succeeded', 2],
    ['event', 'failed', 1],
    ['event', 'timed_out', 1],
    ['call', 'succeeded', 1],
  ] as const) {
    assert.is(sum('svc_runs_total', { run_type, outcome }), count, outcome)
    assert.is(sum('svc_run_duration_seconds_count', { run_type, outcome }), count, outcome)
  }
  assert.ok(sum('svc_run_duration_seconds_sum', { outcome: 'timed_out' }) >= 0.05)
  // Prometheus would not see the increase of a counter that appears with its first run.
  const lost = series.filter(({ name, labels }) => name === 'svc_runs_total' && labels['outcome'] === 'lost')
  assert.equal([lost.length, sum('svc_runs_total', { outcome: 'lost' })], [6, 0])
  assert.is(sum('svc_run_start_delay_seconds_count'), 5)
  assert.ok(sum('svc_child_starts_total') >= 1)
  assert.ok(sum('svc_children') >= 1)
  assert.is(sum('svc_queue_oldest_age_seconds'), 0)
})

metrics('counts requests by route and status; paths, ids and tokens are in no label', async () => {
  for (const id of ['a', 'b']) await api.send('GET', `/projects/no-such-${id}`)
  await api.send('GET', `${url}/no/such/path`)
  const { sum, series } = await scrape()
  const route = '/v1/projects/:project'
  assert.is(sum('svc_http_requests_total', { method: 'GET', route, status: '404' }), 3) // one is of `deploy`
  assert.is(sum('svc_http_request_duration_seconds_count', { method: 'GET', route }), 3)
  assert.is(sum('svc_http_requests_total', { route: '', status: '404' }), 1)
  assert.is(sum('svc_http_requests_total', { status: '2xx' }), 1) // 299 is no known status
  assert.ok(sum('svc_http_requests_refused_total', { code: 'not_found' }) >= 4)
  for (const { name, labels } of series) {
    const text = `${name} ${JSON.stringify(labels)}`
    assert.not.match(text, /[0-9a-f]{8}-[0-9a-f]{4}|no-such|no\/such|shop/)
  }
})

metrics('has the log, the read models and the disk', async () => {
  const { sum, series } = await until(async () => {
    const found = await scrape()
    return found.sum('svc_projection_behind_facts') === 0 ? found : undefined
  })
  assert.ok(sum('svc_log_facts') > 10)
  assert.ok(sum('svc_log_size_bytes') > 1000)
  assert.ok(sum('svc_log_commit_duration_seconds_count') > 5)
  assert.ok(sum('svc_disk_free_bytes') > 0 && sum('svc_disk_free_bytes') <= sum('svc_disk_size_bytes'))
  assert.ok(sum('process_resident_memory_bytes') > 10_000_000)
  const lagging = series.filter(({ name }) => name === 'svc_projection_lag_seconds')
  assert.ok(lagging.some(({ labels }) => /^runs@\d+$/.test(labels['read_model'] ?? '')))
})

metrics('counts open live streams', async () => {
  const follower = await follow(api, '/env/subscribe')
  assert.is((await scrape()).sum('svc_sse_clients'), 1)
  follower.close()
  await until(async () => (await scrape()).sum('svc_sse_clients') === 0)
})

metrics('are those that docs/operations.md lists, with the same kinds and labels', async () => {
  const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const listed = [...page.matchAll(/^\| `((?:svc|process|nodejs)_\w+)` \| (\w+) \|([^|]*)\|/gm)]
  const { kinds, series } = await scrape()
  assert.equal(
    listed.map(([, name, kind]) => `${name} ${kind}`).toSorted(),
    [...kinds].map(([name, kind]) => `${name} ${kind}`).toSorted(),
  )
  for (const [, metric = '', , labels = ''] of listed) {
    const documented = [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label)
    for (const each of series.filter(({ name }) => name.replace(/_(?:bucket|sum|count)$/, '') === metric))
      assert.equal(
        Object.keys(each.labels).filter((label) => label !== 'le' && !documented.includes(label)),
        [],
        metric,
      )
  }
})

metrics('is refused without the operator token, and slowed down for wrong ones', async () => {
  assert.is((await api.send('GET', `${url}/metrics`)).status, 401)
  assert.is((await openApi(url, '').send('GET', `${url}/metrics`)).status, 401)
  assert.is((await openApi(url, operator.key).send('POST', `${url}/metrics`)).status, 405)
  const guess = openApi(url, 'a-wrong-operator-token-of-32-characters')
  const replies = await Promise.all(Array.from({ length: 100 }, () => guess.send('GET', `${url}/metrics`)))
  assert.equal([...new Set(replies.map(({ status }) => status))].toSorted(), [401, 429])
})

metrics.run()
