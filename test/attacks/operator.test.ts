import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { openApi } from '../support/http.ts'
import { spawnServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { allRefused, expected, head, raw } from './raw.ts'

attackSuite('the operator API', [
  {
    id: 'B/14-operator/auth',
    attempt: 'API keys, sessions, near tokens and other schemes on the operator API, and its token elsewhere',
    severity: 'critical',
    run: async ({ server: { url }, attacker, operator }) => {
      const { token } = await attacker.api.post<{ token: string }>('/sessions', { permissions: {} })
      const outcomes: Record<string, number> = {}
      for (const [what, authorization] of Object.entries({
        'API key': `Bearer ${attacker.api.key}`,
        session: `Bearer ${token}`,
        longer: `Bearer ${operator.key}x`,
        shorter: `Bearer ${operator.key.slice(0, -1)}`,
        'other case': `Bearer ${operator.key.toLowerCase()}`,
        basic: `Basic ${operator.key}`,
        bare: operator.key,
      }))
        for (const [method, path] of [
          ['GET', '/orgs'],
          ['POST', '/orgs'],
          ['GET', `/envs/${attacker.env_id}/api-keys`],
          ['POST', `/envs/${attacker.env_id}/api-keys`],
        ] as const)
          outcomes[`${what} ${method} ${path}`] = (
            await fetch(`${url}/operator${path}`, { method, headers: { Authorization: authorization } })
          ).status
      outcomes['GET /v1/env'] = (await operator.send('GET', '/env')).status
      return allRefused(outcomes, [401, 429])
    },
  },
  {
    id: 'B/14-operator/brute',
    attempt: 'guess the operator token without delay and without a line in the log',
    severity: 'low',
    run: async ({ fresh }) => {
      const { server, close } = await fresh()
      const guess = 'guess-of-the-operator-token-000000000'
      const replies = await Promise.all(
        Array.from({ length: 500 }, () =>
          openApi(server.url, guess).send('GET', `${server.url}/operator/orgs`),
        ),
      )
      const refused = replies.filter(({ status }) => status === 429).length
      const lines = await until(
        () =>
          server.output.join('').match(/A wrong operator token was refused \{"ip":"127\.0\.0\.1"/g)?.length,
      )
      await close()
      expected(refused >= 400, `only ${refused} of 500 were refused`)
      expected(!server.output.join('').includes(guess), 'the guess is in the log')
      return `${refused} of 500 guesses refused with 429; ${lines} lines in the log, with the address`
    },
  },
  {
    id: 'B/14-operator/weak',
    attempt: 'start with a weak SVC_OPERATOR_TOKEN or SVC_API_KEY',
    severity: 'low',
    run: async () => {
      const outcomes: Record<string, string> = {}
      const id = newId()
      for (const [name, text] of [
        ['SVC_OPERATOR_TOKEN', 'a'.repeat(16)],
        ['SVC_OPERATOR_TOKEN', 'a'.repeat(64)],
        ['SVC_OPERATOR_TOKEN', 'password12345678'],
        ['SVC_API_KEY', `svc_${id}_${'a'.repeat(16)}`],
        ['SVC_API_KEY', `svc_${id}_${'a'.repeat(64)}`],
      ] as const)
        outcomes[`${name}=${text.slice(0, 12)}…`] = await spawnServer({ env: { [name]: text } }).then(
          async (server) => {
            await server.end('SIGKILL')
            return 'started'
          },
          (error: unknown) =>
            String(error).includes(`${name}: expected`) ? 'refused to start' : String(error),
        )
      return allRefused(outcomes, ['refused to start'])
    },
  },
  {
    id: 'B/14-operator/exposure',
    attempt: 'the default address of the service is reachable from outside',
    severity: 'medium',
    run: ({ server: { url } }) => {
      const { host } = readConfig({})
      expected(host === '127.0.0.1' && url.includes('127.0.0.1'), `listens on ${host}`)
      return Promise.resolve('listens on the loopback addresses unless HOST says otherwise')
    },
  },
  {
    id: 'B/14-operator/exposure/public',
    attempt: '/operator answers under every host',
    severity: 'low',
    run: async ({ fresh }) => {
      const { server, operator, close } = await fresh({ SVC_OPERATOR_HOST: '127.0.0.1' })
      const key = `Authorization: Bearer ${operator.key}`
      const outcomes: Record<string, number> = {}
      for (const host of ['svc', 'hooks.customer.example', '127.0.0.1.evil.example', 'localhost', '[::1]'])
        outcomes[host] = (await raw(server.url, head('GET /operator/orgs', `Host: ${host}`, key))).status
      const own = (await operator.send('GET', `${server.url}/operator/orgs`)).status
      await close()
      expected(own === 200, `the host of the operator: ${own}`)
      return `SVC_OPERATOR_HOST; ${allRefused(outcomes, [404])}`
    },
  },
  {
    id: 'B/14-operator/validation',
    attempt: 'slugs, names, plans and permissions out of bounds',
    severity: 'low',
    run: async ({ server: { url }, operator, attacker }) => {
      const outcomes: Record<string, number> = {}
      for (const [path, body] of [
        ['/orgs', { slug: 'a b', plan: 'pro' }],
        ['/orgs', { slug: 'A', plan: 'pro' }],
        ['/orgs', { slug: 'x'.repeat(300), plan: 'pro' }],
        ['/orgs', { slug: 'a', plan: '__proto__' }],
        ['/orgs', { slug: '../a', plan: 'pro' }],
        ['/orgs', { slug: 'a', plan: 'pro', more: 1 }],
        [`/envs/${attacker.env_id}/api-keys`, { name: 'k', permissions: { 'mcp:*': ['create'] } }],
        [`/envs/${attacker.env_id}/api-keys`, { name: '', permissions: {} }],
        [`/envs/${newId()}/api-keys`, { name: 'k' }],
      ] as const)
        outcomes[`${path} ${JSON.stringify(body).slice(0, 60)}`] = (
          await operator.send('POST', `${url}/operator${path}`, { body })
        ).status
      return allRefused(outcomes, [400, 404])
    },
  },
])
