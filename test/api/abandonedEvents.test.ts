import * as assert from 'uvu/assert'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { deploy, type Event, handled } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { openLog } from '../support/openLog.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

interface Abandoned {
  readonly event_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly event_type: string
  readonly error: { readonly code: string }
  readonly replayed_as: string | null
}

const now = '2026-05-01T10:00:00.000Z'

const abandoned = suite('an abandoned event', { timeoutMs: 40_000 })

abandoned('is listed for the operator and runs its handlers after a replay', async () => {
  const first = await startServer()
  const { dataDir } = first
  const { env_id } = await first.api.get<{ env_id: string }>('/env')
  await deploy(first.api, 'shop', {
    'shop.js': `import { fn } from 'svc'; export const on = fn({ 'on-event': 'paid' }, (e) => e.data)`,
  })
  await first.stop()

  const config = readConfig(installation(dataDir))
  const { store } = await openLog(config)
  const [stream_id, event_id, cancelled] = [newId(), newId(), newId()]
  const publishedAs = (id: string): DomainEvent => ({
    type: 'EventPublished',
    event_id: id,
    stream_id,
    event_type: 'paid',
    event_data: { n: 7 },
    source: 'api',
    event_time: now,
  })
  const handledWith = (id: string, code: string): DomainEvent => ({
    type: 'EventHandled',
    event_id: id,
    stream_id,
    run_ids: [],
    error: { code, message: 'could not be dispatched' },
  })
  const facts: DomainEvent[] = [
    { type: 'StreamCreated', stream_id },
    publishedAs(event_id),
    handledWith(event_id, 'internal_server_error'),
    publishedAs(cancelled),
    handledWith(cancelled, 'cancelled'),
  ]
  const metadata = { env_id, correlation_id: newId() }
  await store.append(
    streamOf.stream(stream_id),
    facts.map((event) => ({ id: newId(), event, metadata })),
    'none',
  )
  await store.close()

  const server = await startServer({ dataDir })
  const operator = openApi(server.url, openSecrets(config).operatorToken)
  const at = `${server.url}/operator/abandoned-events`
  const listed = async () => {
    const { status, json } = await operator.send('GET', at)
    assert.is(status, 200)
    return (json as { data: Abandoned[] }).data
  }
  const [only, ...more] = await listed()
  assert.equal(more, [])
  assert.equal(
    [only?.event_id, only?.env_id, only?.event_type, only?.error.code, only?.replayed_as],
    [event_id, env_id, 'paid', 'internal_server_error', null],
  )
  const event = await server.api.get<Record<string, unknown>>(`/events/${event_id}`)
  assert.equal([event['event_data'], 'error' in event, 'abandoned' in event], [{ n: 7 }, false, false])

  const replay = (id = event_id) => operator.send('POST', `${server.url}/operator/events/${id}/replay`)
  const { status, json } = await replay()
  assert.is(status, 201)
  const published = (json as { data: Event }).data
  assert.equal(
    [published.stream_id, published.event_type, published.event_data],
    [stream_id, 'paid', { n: 7 }],
  )
  const [run] = await handled(server.api, published.event_id)
  assert.equal([run?.status, run?.result], ['succeeded', { n: 7 }])
  assert.equal(((await replay()).json as { data: Event }).data, published)
  assert.is((await listed())[0]?.replayed_as, published.event_id)
  assert.is((await server.api.page('/runs')).pagination.total, 1)

  assert.is((await replay(newId())).status, 404)
  const asCustomer = openApi(server.url, (await createKey(operator, server.url, env_id)).token)
  assert.is((await asCustomer.send('GET', at)).status, 401)
  await server.stop()
})

const createKey = async (operator: ReturnType<typeof openApi>, url: string, env_id: string) => {
  const { json } = await operator.send('POST', `${url}/operator/envs/${env_id}/api-keys`, {
    body: { name: 'k' },
  })
  return (json as { data: { token: string } }).data
}

abandoned.run()
