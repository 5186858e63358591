import * as assert from 'uvu/assert'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deploy, type Webhook } from '../support/build.ts'

const env = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }

const requests = suite('the log of requests', { timeoutMs: 90_000 })

requests(
  'at the level debug has a JSON line of each, with its id and route and without its token',
  async () => {
    const { api, output, stop } = await spawnServer({
      env: { ...env, SVC_LOG_FORMAT: 'json', SVC_LOG_LEVEL: 'debug' },
    })
    await deploy(api, 'shop', {
      'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 's', path: '/a' } }, () => ({ status: 202 }))`,
    })
    const [hook] = await api.get<Webhook[]>('/projects/shop/webhooks')
    const url = hook?.url ?? ''
    const { status, headers } = await api.send('POST', url, { headers: { cookie: 'planted' } })
    assert.is(status, 202)
    const request_id = headers.get('x-request-id')
    const lines = () =>
      output
        .join('')
        .split('\n')
        .slice(0, -1) // a part of a line may have arrived
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    const logged = await until(() => lines().find((line) => line['request_id'] === request_id))
    const { time, ms, ...line } = logged
    assert.ok(typeof time === 'string' && typeof ms === 'number')
    assert.equal(line, {
      level: 'debug',
      msg: 'A request was served',
      request_id,
      method: 'POST',
      route: '/webhook/:org/:env/*rest',
      status: 202,
    })
    assert.not.match(JSON.stringify(lines()), url.split('/').at(-1) ?? '')
    assert.not.match(output.join(''), 'planted')
    await stop()
  },
)

requests('at the default level has none', async () => {
  const { api, output, stop } = await spawnServer({ env: { ...env, SVC_LOG_FORMAT: '' } })
  await api.send('GET', '/projects')
  await stop()
  assert.ok(
    output
      .join('')
      .split('\n')
      .filter((line) => line.startsWith('{')).length >= 2,
  ) // no terminal: JSON
  assert.not.match(output.join(''), 'A request was served')
})

requests.run()
