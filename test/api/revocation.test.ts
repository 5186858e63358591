import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import type { Permissions } from '../../src/events/org.ts'
import { newId } from '../../src/ids.ts'
import { deploy, publish } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { as, isRefusedWith, newServiceKey, newSession } from './issuing.ts'
import { CHAT } from './chat.ts'
import { follow, type Follower } from './sse.ts'

const server = await startServer()
const operator = openApi(server.url, openSecrets(readConfig(installation(server.dataDir))).operatorToken)
const { env_id } = await server.api.get<{ env_id: string }>('/env')
const { stream_id } = await publish(server.api, 'nobody')

interface ApiKey {
  readonly api: Api
  change(changes: object): Promise<unknown>
  remove(): Promise<unknown>
}

const newApiKey = async (permissions: Permissions = { '*:*': ['*'] }): Promise<ApiKey> => {
  const { json } = await operator.send('POST', `${server.url}/operator/envs/${env_id}/api-keys`, {
    body: { name: 'k', permissions },
  })
  const { token, api_key_id } = (json as { data: { token: string; api_key_id: string } }).data
  const at = `${server.url}/operator/api-keys/${api_key_id}`
  const done = async (method: string, body?: object) => {
    const { status, text } = await operator.send(method, at, { body })
    assert.ok(status < 300, text)
  }
  return {
    api: openApi(server.url, token),
    change: (changes) => done('PATCH', changes),
    remove: () => done('DELETE'),
  }
}

const FOLLOWS = { 'stream:*': ['read'] }
const followStream = (api: Api): Promise<Follower> => follow(api, `/streams/${stream_id}/subscribe`)
const isOver = (follower: Follower) => until(() => follower.over)
/** Waits until the follower receives a new event. */
const isOpen = async (follower: Follower): Promise<void> => {
  const { event_id } = await publish(server.api, 'mark', null, { stream_id })
  assert.ok(event_id)
  assert.is(follower.over, false)
}

const streams = suite('open streams')

streams('end with their session: DELETE /sessions/{session_id}', async () => {
  const { api } = await newApiKey()
  const [ended, kept] = [await newSession(api, FOLLOWS), await newSession(api, FOLLOWS)]
  const [follower, other] = [await followStream(as(api, ended)), await followStream(as(api, kept))]
  await api.remove(`/sessions/${ended.session_id}`)
  await isOver(follower)
  await isRefusedWith(as(api, ended), ['GET', `/streams/${stream_id}/subscribe`], [401, 'unauthorized'])
  await isOpen(other)
  other.close()
})

streams('end with their sessions: DELETE /sessions', async () => {
  const { api } = await newApiKey()
  const followers = await Promise.all(
    [1, 2, 3].map(async () => followStream(as(api, await newSession(api, FOLLOWS)))),
  )
  const own = await followStream(api)
  assert.is((await api.send('DELETE', '/sessions')).status, 200)
  await Promise.all(followers.map(isOver))
  await isOpen(own)
  own.close()
})

streams('end with their service key: DELETE /service-keys/{service_key_id}', async () => {
  const { api } = await newApiKey()
  const made = await newServiceKey(api, FOLLOWS)
  const follower = await followStream(as(api, made))
  await api.remove(`/service-keys/${made.service_key_id}`)
  await isOver(follower)
})

streams('end when their session expires', async () => {
  const follower = await followStream(
    as(server.api, await newSession(server.api, FOLLOWS, { expires_in: 10 })),
  )
  await isOver(follower)
})

streams('end when the API key expires that was given an end later, also those of its sessions', async () => {
  const { api, change } = await newApiKey()
  const followers = [await followStream(api), await followStream(as(api, await newSession(api, FOLLOWS)))]
  await change({ expires_in: 3600 })
  await change({ expires_in: 1 })
  await Promise.all(followers.map(isOver))
})

streams('continue when the end of their API key is taken back', async () => {
  const { api, change } = await newApiKey()
  const [follower, other] = [await followStream(api), await newApiKey()]
  const ended = await followStream(other.api)
  await change({ expires_in: 10 })
  await change({ expires_in: null })
  await other.change({ expires_in: 10 })
  await isOver(ended) // it would have ended before
  await isOpen(follower)
  follower.close()
})

for (const [what, path] of [
  ['of a stream', `/streams/${stream_id}/subscribe`],
  ['of the environment', '/env/subscribe'],
  ['of a consumer', `/env/subscribe?consumer=c-${newId()}`],
] as const)
  streams(`${what} end when the API key is disabled, also those of its sessions`, async () => {
    const { api, change } = await newApiKey()
    const session = as(api, await newSession(api, { '*:*': ['*'] }))
    const followers = [await follow(api, path), await follow(session, path)]
    await change({ enabled: false })
    await Promise.all(followers.map(isOver))
    for (const who of [api, session]) await isRefusedWith(who, ['GET', path], [401, 'unauthorized'])
    await change({ enabled: true })
    for (const who of [api, session]) (await follow(who, path)).close()
  })

streams('of subscribe-with-event end when the API key is deleted', async () => {
  const { api, remove } = await newApiKey()
  const session = as(api, await newSession(api, { '*:*': ['*'] }))
  const key = await newServiceKey(api, FOLLOWS)
  await deploy(server.api, 'chat', { 'chat.js': CHAT })
  const body = { event_type: 'wait', event_data: 60_000 }
  const waiting = await follow(session, '/streams/subscribe-with-event', { method: 'POST', body })
  const started = await waiting.upTo('run:start')
  const run = started.at(-1)?.data['run'] as { run_id: string } | undefined
  const followers = [waiting, await followStream(as(api, key))]
  await remove()
  await Promise.all(followers.map(isOver))
  for (const who of [api, session, as(api, key)])
    await isRefusedWith(who, ['GET', '/runs'], [401, 'unauthorized'])
  await publish(server.api, 'svc:cancel', { run_id: run?.run_id })
})

streams(
  'end when the narrowed API key, or a credential it issued, no longer allows them; others continue',
  async () => {
    const { api, change } = await newApiKey()
    const both = as(api, await newSession(api, { ...FOLLOWS, 'env:*': ['read'] }))
    const [stream, env, own] = [
      await followStream(both),
      await follow(both, '/env/subscribe'),
      await followStream(api),
    ]
    await change({ permissions: { 'env:*': ['read'], 'run:*': ['read'] } })
    await Promise.all([isOver(stream), isOver(own)])
    await isOpen(env)
    env.close()
    await isRefusedWith(both, ['GET', `/streams/${stream_id}/subscribe`], [403, 'forbidden'])
    assert.is((await both.send('GET', '/env')).status, 200)
    await isRefusedWith(both, ['GET', '/runs'], [403, 'forbidden']) // what it was not given it does not get
  },
)

streams('continue when the API key is only renamed', async () => {
  const { api, change } = await newApiKey()
  const follower = await followStream(api)
  await change({ name: 'other' })
  await isOpen(follower)
  follower.close()
})

streams.after(() => server.stop())
streams.run()
