import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig, type Role } from '../../src/process/config.ts'
import { standInForEventStore } from '../support/openCluster.ts'
import { deploy, publish, type Run } from '../support/build.ts'
import { openCollector } from '../support/collector.ts'
import { engineUrl, namedUrl } from '../support/engines.ts'
import { parseExposition, type Scraped } from '../support/exposition.ts'
import { openApi } from '../support/http.ts'
import { installation, realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const FILES = {
  'f.js': `import { currentRun, fn, run } from 'svc'
    export const asked = fn({ 'on-event': 'asked', retry: { attempts: 1, delay: 1 } }, async () => {
      const { attempt } = currentRun()
      await run('f/child')
      if (attempt === 1) throw new Error('no')
    })
    export const child = () => 1`,
}

const ROLES = [['api'], ['worker'], ['projector', 'saga']] as const satisfies readonly (readonly Role[])[]

const observed = async (nodes: readonly ServerProcess[], env: Record<string, string>) => {
  const { operatorToken } = openSecrets(readConfig(installation(tempDir(), env)))
  const scrapes: Scraped[] = []
  for (const { url } of nodes) {
    const { status, text } = await openApi(url, operatorToken).send('GET', `${url}/metrics`)
    assert.is(status, 200, text)
    assert.is((await openApi(url, 'none').send('GET', `${url}/metrics`)).status, 401)
    scrapes.push(parseExposition(text))
  }
  return scrapes
}

const hasEngines = ({ sum }: Scraped): boolean =>
  ['event_store', 'read_models', 'blobs'].every((engine) => sum('svc_engine_up', { engine }) === 1)

const check = async (env: Record<string, string>): Promise<void> => {
  const collector = await openCollector()
  const shared = { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
  const nodes = await Promise.all(
    ROLES.map((roles) => spawnServer({ env: { ...shared, SVC_ROLES: roles.join(',') } })),
  )
  try {
    const [api] = nodes.map((node) => node.api)
    assert.ok(api)
    await deploy(api, 'shop', FILES)
    const { event_id } = await publish(api, 'asked')
    await until(
      async () =>
        (await api.page<Run>(`/events/${event_id}/runs`)).data.some((run) => run.status === 'succeeded'),
      { timeoutMs: 30_000 },
    )
    const scrapes = await until(async () => {
      const found = await observed(nodes, env)
      return found.every(hasEngines) ? found : undefined // an engine of a busy machine may be late for a moment
    })
    const [ofApi, ofWorker, ofProjector] = scrapes
    assert.ok(ofApi && ofWorker && ofProjector)
    assert.equal(
      scrapes.map(({ sum }) => sum('svc_runs_total')),
      [0, 4, 0],
    ) // two attempts, each with a child run
    assert.equal(
      scrapes.map(({ sum }) => sum('svc_http_requests_total', { route: '/v1/events', status: '201' })),
      [1, 0, 0],
    )
    const isLag = ({ name }: { name: string }) => name === 'svc_projection_lag_seconds'
    assert.equal(
      scrapes.map(({ series }) => series.some(isLag)),
      [false, false, true],
    )
    for (const { kinds } of scrapes)
      assert.equal([...kinds.keys()].toSorted(), [...ofApi.kinds.keys()].toSorted())
    assert.ok(ofWorker.sum('svc_log_commit_duration_seconds_count') > 0)
    const [request] = await until(() => {
      const { spans } = collector
      const found = spans.filter(({ name }) => name === 'POST /v1/events')
      return found.length > 0 && spans.filter(({ name }) => name === 'run').length === 4 ? found : undefined
    })
    assert.ok(request)
    const { spans } = collector
    const traced = spans.filter(({ traceId }) => traceId === request.traceId)
    const childrenOf = (parentId: string | undefined) =>
      traced.filter(({ parentSpanId }) => parentSpanId === parentId)
    const [published] = childrenOf(request.spanId)
    const attempts = childrenOf(published?.spanId)
    assert.equal(attempts.map(({ attributes }) => Number(attributes['svc.attempt'])).toSorted(), [1, 2])
    for (const { spanId } of attempts)
      assert.equal(
        childrenOf(spanId).map(({ attributes }) => attributes['svc.function']),
        ['f/child'],
      )
    assert.is(traced.length, 6)
  } finally {
    await Promise.all(nodes.map((node) => node.stop()))
    await collector.close()
  }
}

if (engineUrl('mongodb') === null || engineUrl('s3') === null) {
  notHere('the metrics and traces of several nodes', 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const cluster = suite('the metrics and traces of several nodes', { timeoutMs: 240_000 })
  cluster('are counted once, by the node that did the work; a trace crosses the nodes', async () => {
    const standIn = await standInForEventStore()
    try {
      await check(realEngines(tempDir(), namedUrl))
    } finally {
      await standIn?.stop()
    }
  })
  cluster.run()
}
