import * as assert from 'uvu/assert'
import { openStore } from '../../src/process/engines.ts'
import { readConfig } from '../../src/process/config.ts'
import { deploy, type Event, handle, type Run, type Webhook } from '../support/build.ts'
import { type CollectedSpan, openCollector } from '../support/collector.ts'
import { installation } from '../support/installation.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const embedded = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }

const FILES = {
  'f.js': `import { currentRun, fn, run } from 'svc'
    export const asked = fn({ 'on-event': 'asked', retry: { attempts: 1, delay: 1 } }, async () => {
      const own = currentRun()
      const child = await run('f/child', own.attempt)
      if (own.attempt === 1) throw new Error('planted-message')
      return { own: own.traceparent, child }
    })
    export const child = () => currentRun().traceparent ?? null
    export const hook = fn({ webhook: { service: 's', path: '/a' } }, () => currentRun().traceparent ?? null)`,
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CLIENT = `00-${TRACE}-00f067aa0ba902b7-01`

const idsOf = (traceparent: unknown) => {
  const [, traceId, spanId] = String(traceparent).split('-')
  return { traceId, spanId }
}

const publishTraced = async ({ api }: TestServer, traceparent: string): Promise<Event> => {
  const body = { event_type: 'asked', event_data: { secret: 'planted-data' } }
  const { status, json, text } = await api.send('POST', '/events', { body, headers: { traceparent } })
  assert.is(status, 201, text)
  return (json as { data: Event }).data
}

/** The last attempt of the run of an event. */
const endOf = ({ api }: TestServer, event_id: string): Promise<Run> =>
  until(
    async () => {
      const { data } = await api.page<Run>(`/events/${event_id}/runs`)
      return data.find(({ status }) => status === 'succeeded')
    },
    { timeoutMs: 20_000 },
  )

/** The context that the function saw. */
const ownOf = ({ result }: Pick<Run, 'result'>): unknown => (result as { own?: string }).own

const traces = suite('the trace of an event', { timeoutMs: 90_000 })

traces('continues that of the client: request, event, attempts, and the child run of each', async () => {
  const collector = await openCollector()
  const env = {
    ...embedded,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b',
  }
  const server = await startServer({ env })
  await deploy(server.api, 'shop', FILES)
  const { event_id } = await publishTraced(server, CLIENT)
  const { result } = await endOf(server, event_id)
  await server.stop() // sends the last spans
  const spans = collector.spans.filter(({ traceId }) => traceId === TRACE)
  const childrenOf = (parent: CollectedSpan): CollectedSpan[] =>
    spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId).sort((a, b) => a.startMs - b.startMs)
  const [request, ...others] = spans.filter(({ parentSpanId }) => parentSpanId === '00f067aa0ba902b7')
  assert.ok(request)
  assert.is(others.length, 0)
  assert.is(request.name, 'POST /v1/events')
  assert.is(Number(request.attributes['http.response.status_code']), 201)
  assert.is(request.attributes['service.name'], 'svc')
  const [published] = childrenOf(request)
  assert.ok(published)
  assert.is(published.name, 'publish')
  assert.is(published.attributes['svc.event_id'], event_id)
  const attempts = childrenOf(published)
  assert.equal(
    attempts.map(({ name, attributes }) => [
      name,
      attributes['svc.function'],
      Number(attributes['svc.attempt']),
      attributes['svc.outcome'],
    ]),
    [
      ['run', 'f/asked', 1, 'failed'],
      ['run', 'f/asked', 2, 'succeeded'],
    ],
  )
  assert.equal(
    attempts.map(({ status }) => status),
    [{ code: 2, message: 'function_failed' }, { code: 0 }],
  )
  for (const attempt of attempts) {
    const [child, ...more] = childrenOf(attempt)
    assert.ok(child)
    assert.is(more.length, 0)
    assert.is(child.attributes['svc.function'], 'f/child')
    assert.is(child.attributes['svc.parent_run_id'], attempt.attributes['svc.run_id'])
    assert.ok(attempt.startMs <= child.startMs)
    assert.ok(child.endMs < attempt.endMs + 1) // the start is in whole milliseconds, and the end is counted from it
  }
  assert.is(spans.length, 6)
  const { own, child } = result as { own: string; child: string }
  assert.equal(idsOf(own), { traceId: TRACE, spanId: attempts[1]?.spanId })
  assert.equal(idsOf(child), { traceId: TRACE, spanId: attempts[1] && childrenOf(attempts[1])[0]?.spanId })
  assert.not.match(JSON.stringify(collector.spans), /planted/)
  assert.is(collector.requests[0]?.['x-key'], 'a b')
  await collector.close()
})

traces('is not recorded if the client does not sample it, and goes on to functions', async () => {
  const collector = await openCollector()
  const server = await startServer({ env: { ...embedded, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } })
  await deploy(server.api, 'shop', FILES)
  const { event_id } = await publishTraced(server, CLIENT.replace(/01$/, '00'))
  const { result } = await endOf(server, event_id)
  await server.stop()
  assert.match(String(ownOf({ result })), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
  assert.equal(
    collector.spans.filter(({ traceId }) => traceId === TRACE),
    [],
  )
  assert.ok(collector.spans.some(({ name }) => name === 'POST /v1/projects')) // those of `deploy`
  await collector.close()
})

traces(
  'without a collector: functions get the context of the client, and no fact has one without it',
  async () => {
    const dataDir = tempDir()
    const server = await startServer({ dataDir, env: embedded })
    await deploy(server.api, 'shop', FILES)
    await handle(server.api, 'asked') // its first attempt fails
    for (const header of [
      '',
      'planted',
      CLIENT.replace('00-', 'ff-'),
      `${CLIENT}-more`,
      CLIENT.toUpperCase(),
    ]) {
      const { event_id } = await publishTraced(server, header)
      assert.is(ownOf(await endOf(server, event_id)), undefined, header)
    }
    const config = readConfig(installation(dataDir, embedded))
    const [hook] = await server.api.get<Webhook[]>('/projects/shop/webhooks')
    assert.is((await server.api.send('POST', hook?.url ?? '')).text, 'null')
    const { event_id } = await publishTraced(server, CLIENT)
    assert.is(ownOf(await endOf(server, event_id)), CLIENT)
    const headers = { traceparent: CLIENT }
    assert.is((await server.api.send('POST', hook?.url ?? '', { headers })).json, CLIENT)
    await server.stop()
    const store = await openStore(config)
    const facts: string[] = []
    for await (const { events, caughtUp } of store.subscribe({ signal: new AbortController().signal })) {
      for (const fact of events) facts.push(JSON.stringify(fact))
      if (caughtUp) break
    }
    await store.close()
    const traced = facts.filter((fact) => fact.includes('traceparent'))
    assert.ok(traced.length > 0)
    assert.equal(
      traced.filter((fact) => !fact.includes(CLIENT)),
      [],
    )
    assert.not.match(facts.join(''), '"traceparent":"planted"')
  },
)

traces(
  'delays and fails no run when the collector refuses, hangs or is gone; the log has one line',
  async () => {
    const refusing = await openCollector(400)
    for (const endpoint of [refusing.url, 'http://127.0.0.1:9']) {
      const server = await startServer({ env: { ...embedded, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } })
      await deploy(server.api, 'shop', FILES)
      const { event_id } = await publishTraced(server, CLIENT)
      await endOf(server, event_id)
      const warned = () => server.output.filter((line) => line.includes('Spans could not be sent'))
      await until(() => warned().length > 0, { timeoutMs: 20_000 })
      await endOf(server, (await publishTraced(server, CLIENT)).event_id)
      await server.stop()
      assert.is(warned().length, 1, warned().join(''))
    }
    await refusing.close()
  },
)

traces.run()
