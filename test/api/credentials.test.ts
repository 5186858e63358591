import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { newApiToken } from '../../src/access/tokens.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startWithOther()
const { api, other } = server

const auth = suite('a credential')

const [, id = '', secret = ''] = /^svc_([^_]+)_(.+)$/.exec(api.key) ?? []
const bad: Record<string, string | undefined> = {
  none: undefined,
  empty: '',
  'another scheme': `Basic ${api.key}`,
  'no scheme': api.key,
  'no token': 'Bearer ',
  garbage: 'Bearer x',
  'a wrong secret': `Bearer svc_${id}_${secret.slice(0, -1)}${secret.endsWith('a') ? 'b' : 'a'}`,
  'a longer secret': `Bearer ${api.key}a`,
  'a shorter secret': `Bearer ${api.key.slice(0, -1)}`,
  'another key’s secret': `Bearer svc_${id}_${other.key.split('_').at(-1)}`,
  'an id that is unknown': `Bearer ${newApiToken(newId())}`,
  'an id in capitals': `Bearer svc_${id.toUpperCase()}_${secret}`,
  'no brand': `Bearer ${id}_${secret}`,
  'two tokens': `Bearer ${api.key} ${api.key}`,
  'a very long one': `Bearer svc_${id}_${'a'.repeat(8000)}`,
}
for (const [name, authorization] of Object.entries(bad)) {
  auth(`is refused, always the same: ${name}`, async () => {
    for (const [method, path] of [
      ['GET', '/v1/projects'],
      ['POST', '/v1/events'],
      ['GET', `/v1/runs/${newId()}`],
      ['GET', '/v1/env/subscribe'],
    ] as const) {
      const response = await fetch(`${server.url}${path}`, {
        method,
        headers: authorization === undefined ? {} : { authorization },
      })
      const { request_id, ...error } = ((await response.json()) as { error: Record<string, string> }).error
      assert.equal(
        [response.status, error],
        [
          401,
          { code: 'unauthorized', message: 'Expected a valid credential in `Authorization: Bearer <token>`' },
        ],
      )
      assert.is(response.headers.get('www-authenticate'), 'Bearer')
      assert.ok(request_id)
    }
  })
}

auth('may be sent with the scheme in any case', async () => {
  assert.is((await api.send('GET', '/env', { headers: { Authorization: `bearer ${api.key}` } })).status, 200)
})

auth('belongs to one environment', async () => {
  const [ours, theirs] = [
    await api.get<Record<string, unknown>>('/env'),
    await other.get<Record<string, unknown>>('/env'),
  ]
  assert.equal(Object.keys(ours), ['env_id', 'org_id', 'name', 'active'])
  assert.equal([ours['name'], ours['active'], theirs['name']], ['dev', true, 'dev'])
  assert.is.not(ours['env_id'], theirs['env_id'])
})

auth('is in no log line', () =>
  assert.equal(
    server.output.filter((line) => line.includes(secret)),
    [],
  ),
)

auth.after(() => server.stop())
auth.run()
