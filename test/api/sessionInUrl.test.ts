import * as assert from 'uvu/assert'
import { deploy } from '../support/build.ts'
import { openCollector } from '../support/collector.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { installation } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { CHAT } from './chat.ts'
import { follow, publishAndFollow } from './sse.ts'
import { as, newServiceKey, newSession } from './issuing.ts'
import { isRefused } from './refusal.ts'

const collector = await openCollector()
const server = await spawnServer({
  env: { SVC_LOG_LEVEL: 'debug', SVC_LOG_FORMAT: 'json', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
})
const { api } = server
await deploy(api, 'talk', { 'chat.js': CHAT })
const talked = await publishAndFollow(api, 'talk', { words: ['a', 'b'] })
const [published] = await talked.rest()
const stream_id = String(published?.data['stream_id'])
const path = `/streams/${stream_id}/subscribe`
const session = await newSession(api, { [`stream:${stream_id}`]: ['read'] })

/** A client without any header, such as `EventSource`. */
const { url } = api
const open = (target: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/v1${target}`, { headers, redirect: 'manual' })
const answer = async (target: string, headers: Record<string, string> = {}) => {
  const response = await open(target, headers)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) as unknown }
}

const urls = suite('a session in the URL of a stream', { timeoutMs: 60_000 })

urls('opens the stream like one in the header, from the last id of the browser too', async () => {
  const response = await open(`${path}?from=start&session=${session.token}`)
  assert.is(response.status, 200)
  assert.is(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.match(response.headers.get('cache-control') ?? '', 'no-store')
  assert.is(response.headers.get('referrer-policy'), 'no-referrer')
  const whole = await response.text()
  const asHeader = await (await follow(as(api, session), `${path}?from=start`)).rest()
  const idsOf = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id)
  assert.equal(
    idsOf(whole),
    asHeader.map(({ id }) => id),
  )
  const [first] = idsOf(whole)
  const resumed = await open(`${path}?session=${session.token}`, { 'Last-Event-ID': String(first) })
  assert.equal(idsOf(await resumed.text()), idsOf(whole).slice(1))
})

urls('opens the feed of the environment', async () => {
  const { token } = await newSession(api, { 'env:*': ['read'] })
  const response = await open(`/env/subscribe?session=${token}`)
  assert.is(response.status, 200)
  await response.body?.cancel()
})

urls('needs the permission for the stream', async () => {
  const { token } = await newSession(api, { 'stream:other': ['read'] })
  const { status, text } = await answer(`${path}?session=${token}`)
  assert.is(status, 403)
  assert.match(text, 'lacks the permission')
})

urls('is checked like one in the header: unknown, wrong and revoked ones are 401', async () => {
  const other = await newSession(api, { 'stream:*': ['read'] })
  const wrong = other.token.slice(0, -1) + (other.token.endsWith('a') ? 'b' : 'a')
  for (const token of ['s_', 's_x', wrong]) assert.is((await answer(`${path}?session=${token}`)).status, 401)
  assert.is((await answer(path)).status, 401)
  await api.remove(`/sessions/${other.session_id}`)
  assert.is((await answer(`${path}?session=${other.token}`)).status, 401)
})

urls('ends the stream when it is revoked', async () => {
  const { token, session_id } = await newSession(api, { 'env:*': ['read'] })
  const response = await open(`/env/subscribe?session=${token}`)
  assert.is(response.status, 200)
  await api.remove(`/sessions/${session_id}`)
  await response.text() // ends
})

urls('is the only credential there: keys and the token of the operator are refused', async () => {
  const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
  const service = await newServiceKey(api, { 'stream:*': ['read'] }, { name: 'a' })
  for (const [token, got] of [
    [api.key, 'an API key'],
    [service.token, 'a service key'],
    [operatorToken, 'another text'],
    ['', 'another text'],
  ] as const) {
    const refused = await answer(`${path}?session=${token}`)
    assert.is(refused.status, 400)
    isRefused(refused, `session: expected the token of a session, got ${got}`)
    if (token !== '') assert.not.match(refused.text, token)
  }
})

urls('is refused beside another credential, and twice', async () => {
  const both = await answer(`${path}?session=${session.token}`, { Authorization: `Bearer ${session.token}` })
  assert.is(both.status, 400)
  isRefused(both, /^session: expected one credential/)
  const twice = await answer(`${path}?session=${session.token}&session=${session.token}`)
  assert.is(twice.status, 400)
  isRefused(twice, 'session: expected once, got 2 times')
})

urls('is refused by every other route', async () => {
  const { token } = await newSession(api, { '*:*': ['*'] })
  for (const [method, target] of [
    ['GET', '/runs'],
    ['GET', '/env'],
    ['GET', `/events/${String(published?.data['event_id'])}`],
    ['POST', '/events'],
    ['POST', '/streams/subscribe-with-event'],
  ] as const) {
    const body = { event_type: 'a', event_data: null }
    const sent = { ...(method === 'POST' && { body }) }
    const alone = await api.send(method, `${target}?session=${token}`, {
      ...sent,
      headers: { Authorization: '' },
    })
    assert.is(alone.status, 401, target)
    const beside = await api.send(method, `${target}?session=${token}`, sent)
    assert.is(beside.status, 400, target)
    isRefused(beside, 'session: ')
  }
})

urls('is in no line of the log and in no trace', async () => {
  const { token } = await newSession(api, { 'env:*': ['read'] })
  for (const target of [
    `${path}?session=${token}`,
    `/env/subscribe?from=nowhere&session=${token}`,
    `/x?session=${token}`,
  ]) {
    const response = await open(target)
    assert.ok(response.status >= 400, target)
    assert.not.match(await response.text(), token)
    const request_id = response.headers.get('x-request-id') ?? ''
    await until(() => server.output.some((line) => line.includes(request_id)))
    await until(() => collector.spans.some(({ attributes }) => attributes['svc.request_id'] === request_id))
  }
  const told = server.output.join('') + JSON.stringify(collector.spans)
  for (const part of [token, session.token]) assert.not.match(told, part.split('_').at(-1) ?? part)
})

urls.after(async () => {
  await server.stop()
  await collector.close()
})

urls.run()
