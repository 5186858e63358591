import { parseApiToken } from '../../src/access/tokens.ts'
import { createHash, randomUUID } from 'node:crypto'
import * as assert from 'uvu/assert'
import { readConfig } from '../../src/process/config.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../src/ids.ts'
import { deploy, type Event, type Run } from '../support/build.ts'
import type { Answer, Api, Sent } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { openLog } from '../support/openLog.ts'
import { spawnServer, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Repeats the request while the first one may still be in progress, which takes a cluster some seconds to rule out. */
const sendUntilTaken = async (api: Api, path: string, sent: Sent): Promise<Answer> =>
  until(async () => {
    const answer = await api.send('POST', path, sent)
    return answer.status === 409 && answer.headers.has('retry-after') ? undefined : answer
  })

const crash = suite('a request with a key whose process was killed', { timeoutMs: 40_000 })

crash('is continued after the restart, and nothing is started twice', async () => {
  const dataDir = tempDir()
  const killed = await spawnServer({ dataDir })
  await deploy(killed.api, 'shop', { 'f.js': 'export const a = () => 1' })
  const sent = {
    body: { code: 'await new Promise((resolve) => setTimeout(resolve, 60_000))' },
    headers: { 'Idempotency-Key': 'k' },
  }
  const lost = killed.api.send('POST', '/projects/shop/eval', sent).catch(() => null)
  const run = await until(async () => (await killed.api.page<Run>('/runs')).data[0])
  await killed.end('SIGKILL')
  assert.is(await lost, null)

  const server = await spawnServer({ dataDir })
  const answer = await sendUntilTaken(server.api, '/projects/shop/eval', sent)
  assert.equal([answer.status, answer.headers.get('idempotency-replayed')], [201, null])
  const { run_id, error } = (answer.json as { data: Run }).data
  assert.equal([run_id, error?.code], [run.run_id, 'worker_lost'])
  assert.is((await server.api.page('/runs')).pagination.total, 1)
  const again = await server.api.send('POST', '/projects/shop/eval', sent)
  assert.equal([again.text, again.headers.get('idempotency-replayed')], [answer.text, 'true'])
  await server.stop()
})

crash('between its event and its answer publishes no second event', async () => {
  const dataDir = tempDir()
  const first = await startServer({ dataDir })
  const { env_id } = await first.api.get<{ env_id: string }>('/env')
  await first.stop()

  const config = readConfig(installation(dataDir))
  const { store, keyring } = await openLog(config)
  const claim_id = newId()
  const [stream_id, event_id] = [derivedIdBeside(claim_id, 'stream'), derivedIdBeside(claim_id, 'event')]
  const metadata = { env_id, correlation_id: newId() }
  const append = (stream: string, ...events: DomainEvent[]) =>
    store.append(
      stream,
      events.map((event) => ({ id: randomUUID(), event, metadata })),
      'none',
    )
  const key = 'dead'
  const { api_key_id } = parseApiToken(first.api.key) ?? {}
  const scope = [env_id, api_key_id, 'POST', '/v1/events', key]
  await append(`idem-${createHash('sha256').update(JSON.stringify(scope)).digest('hex')}`, {
    type: 'RequestClaimed',
    claim_id,
    attempt: 1,
    fingerprint: keyring.macOf(JSON.stringify(['', { type: 'x', data: 1 }])),
    holder: 'dead',
    at: new Date().toISOString(),
    until: new Date(Date.now() + 60_000).toISOString(),
  })
  const event_time = '2026-05-01T10:00:00.000Z'
  await append(
    streamOf.stream(stream_id),
    { type: 'StreamCreated', stream_id },
    {
      type: 'EventPublished',
      event_id,
      stream_id,
      event_type: 'x',
      event_data: 1,
      source: 'api',
      event_time,
    },
  )
  await store.close()

  const server = await startServer({ dataDir })
  const sent = { body: { type: 'x', data: 1 }, headers: { 'Idempotency-Key': key } }
  const answer = await sendUntilTaken(server.api, '/events', sent)
  assert.is(answer.status, 201)
  assert.equal((answer.json as { data: Event }).data, {
    event_id,
    env_id,
    stream_id,
    event_type: 'x',
    event_data: 1,
    event_time,
    created_at: event_time,
    handlers: 0,
  })
  assert.is((await server.api.page('/events')).pagination.total, 1)
  await server.stop()
})

crash.run()
