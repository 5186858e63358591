import { newApiToken } from '../../src/access/tokens.ts'
import { newId } from '../../src/ids.ts'
import { as, newSession } from '../api/issuing.ts'
import { attackSuite } from './attack.ts'
import { allRefused, bearer, expected, head, limited, raw } from './raw.ts'

attackSuite('credentials of clients', [
  {
    id: 'B/01-auth/malformed',
    attempt: 'malformed, foreign and misplaced tokens',
    severity: 'critical',
    run: async ({ server: { url }, victim: { api } }) => {
      const id = api.key.slice(4, 40)
      const tokens = [
        '',
        'Bearer',
        'Bearer ',
        `Basic ${api.key}`,
        api.key,
        `Bearer ${api.key}x`,
        `Bearer x${api.key}`,
      ]
      tokens.push(
        `Bearer ${api.key.slice(0, -1)}`,
        `Bearer ${api.key.toUpperCase()}`,
        `Bearer ${api.key} ${api.key}`,
      )
      tokens.push(
        `Bearer "${api.key}"`,
        `Bearer ${api.key},x`,
        `Bearer svc_${id}_`,
        `Bearer svc_${id}_${'A'.repeat(49)}`,
      )
      tokens.push(
        `Bearer s_${id}_${'A'.repeat(49)}`,
        `Bearer ${id}_${'A'.repeat(49)}`,
        'Bearer null',
        'Bearer __proto__',
      )
      const outcomes: Record<string, number> = {}
      for (const [n, token] of tokens.entries())
        outcomes[`token ${n}`] = (await fetch(`${url}/v1/env`, { headers: { Authorization: token } })).status
      for (const query of ['access_token', 'token', 'api_key', 'authorization'])
        outcomes[query] = (await fetch(`${url}/v1/env?${query}=${api.key}`)).status
      for (const header of ['X-Api-Key', 'Cookie', 'Proxy-Authorization', 'X-Authorization'])
        outcomes[header] = (
          await fetch(`${url}/v1/env`, { headers: { [header]: `Bearer ${api.key}` } })
        ).status
      return allRefused(outcomes, [401])
    },
  },
  {
    id: 'B/01-auth/duplicate',
    attempt: 'two Authorization headers, of which a proxy may read the other one',
    severity: 'low',
    run: async ({ server: { url }, attacker }) => {
      const [own, none] = [bearer(attacker), 'Authorization: Bearer none']
      const tried = async (...headers: readonly string[]) =>
        (await raw(url, head('GET /v1/env', 'Host: svc', ...headers))).status
      return allRefused(
        {
          'valid first': await tried(own, none),
          'valid second': await tried(none, own),
          'both valid': await tried(own, own),
          'other case': await tried(own, own.replace('Authorization', 'AUTHORIZATION')),
          apart: await tried(own, 'Accept: */*', none),
        },
        [400],
      )
    },
  },
  {
    id: 'B/01-auth/timing',
    attempt: 'learn from the refusal whether a key id exists',
    severity: 'medium',
    run: async ({ server: { url }, victim: { api } }) => {
      const known = `${api.key.slice(0, 41)}${newApiToken(newId()).slice(41)}`
      const texts = new Set<string>()
      for (const token of [known, newApiToken(newId()), `${api.key.slice(0, -1)}~`]) {
        const reply = await fetch(`${url}/v1/env`, { headers: { Authorization: `Bearer ${token}` } })
        const { error } = (await reply.json()) as { error: { code: string; message: string } }
        texts.add(`${reply.status} ${error.code} ${error.message}`)
      }
      expected(texts.size === 1, `the refusals differ: ${[...texts].join(' / ')}`)
      return `always ${[...texts].join('')}; the secret is compared with a MAC in constant time, also for unknown ids`
    },
  },
  {
    id: 'B/01-auth/escalation',
    attempt: 'sessions and service keys with more permissions than their parent, and chains of them',
    severity: 'high',
    run: async ({ attacker }) => {
      const narrow = await limited(attacker, {
        'key:*': ['create'],
        'session:*': ['create'],
        'event:a': ['create'],
      })
      const outcomes: Record<string, number> = {}
      for (const map of [
        { '*:*': ['*'] },
        { 'event:*': ['create'] },
        { 'event:b': ['create'] },
        { 'event:a': ['read'] },
      ])
        for (const path of ['/sessions', '/service-keys'])
          outcomes[`${path} ${JSON.stringify(map)}`] = (
            await narrow.send('POST', path, { body: { permissions: map } })
          ).status
      const gone = await newSession(attacker.api, { 'env:*': ['read'] })
      const ended = as(attacker.api, gone)
      expected((await ended.send('GET', '/env')).status === 200, 'the session is not valid')
      await attacker.api.remove(`/sessions/${gone.session_id}`)
      outcomes['revoked'] = (await ended.send('GET', '/env')).status
      return allRefused(outcomes, [403, 401])
    },
  },
  {
    id: 'B/12-rates/unauthenticated',
    attempt: 'guess tokens and webhook URLs as fast as the service answers',
    severity: 'low',
    run: async ({ fresh }) => {
      const { server, victim, close } = await fresh()
      const counts: Record<string, string> = {}
      await victim.api.get('/env')
      for (const [what, send] of [
        [
          'tokens',
          () =>
            fetch(`${server.url}/v1/env`, { headers: { Authorization: `Bearer ${newApiToken(newId())}` } }),
        ],
        ['no token', () => fetch(`${server.url}/v1/env`)],
        [
          'webhooks',
          () => fetch(`${server.url}/webhook/${victim.org}/prod/s/${newId()}`, { method: 'POST' }),
        ],
      ] as const) {
        const replies = await Promise.all(Array.from({ length: 300 }, send))
        const refused = replies.filter(({ status }) => status === 429).length
        expected(refused >= 100, `${what}: only ${refused} of 300 were refused`)
        counts[what] = `${refused} of 300 refused with 429`
      }
      expected((await victim.api.send('GET', '/env')).status === 200, 'a known credential was refused')
      await close()
      return `${Object.entries(counts)
        .map((one) => one.join(': '))
        .join(', ')}; known credentials are served`
    },
  },
])
