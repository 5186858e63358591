import { attackSuite } from './attack.ts'
import { allRefused, expected, head, hooksOf, raw } from './raw.ts'

const ECHO = '(request) => request'

type Seen = Readonly<Record<string, unknown>> & { readonly headers: Readonly<Record<string, string>> }

const called = async (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Seen> =>
  (await (await fetch(url, { method: 'POST', headers })).json()) as Seen

attackSuite('requests to webhooks', [
  {
    id: 'B/04-webhooks/token',
    attempt: "wrong, short, long and other endpoints' tokens, and other spellings of the URL",
    severity: 'critical',
    run: async ({ attacker, victim, server }) => {
      const own = await hooksOf(attacker, { a: { code: ECHO }, b: { code: ECHO } })
      const theirs = (await hooksOf(victim, { a: { code: ECHO } })).get('a') ?? ''
      const [url = '', other = ''] = [own.get('a'), own.get('b')]
      const token = url.split('/').at(-1) ?? ''
      const swapped = (text: string) => text.slice(0, text.lastIndexOf('/') + 1)
      const path = url.slice(server.url.length)
      const [, , org = '', env = ''] = path.split('/')
      const outcomes: Record<string, number> = {}
      for (const alias of [
        swapped(url),
        url.slice(0, -1),
        `${url}x`,
        swapped(url) + token.toLowerCase(),
        swapped(url) + (other.split('/').at(-1) ?? ''),
        swapped(theirs) + token,
        swapped(url) + (theirs.split('/').at(-1) ?? ''),
        `${url}/`,
        `${url}%00`,
        url.replace(`/${org}/${env}/`, `/${org}%2f${env}/`),
        url.replace('/a/', '/A/'),
        url.replace('/webhook/', '/webhook//'),
        url.replace('/webhook/', '/WEBHOOK/'),
        url.replace('/webhook/', '/webhook/x/../'),
      ])
        outcomes[alias.slice(server.url.length)] = (
          await raw(
            server.url,
            head(`POST ${alias.slice(server.url.length)}`, 'Host: svc', 'Content-Length: 0'),
          )
        ).status
      return allRefused(outcomes, [404])
    },
  },
  {
    id: 'B/04-webhooks/methods',
    attempt: 'other methods, HEAD and override headers on an endpoint of POST',
    severity: 'low',
    run: async ({ attacker }) => {
      const url = (await hooksOf(attacker, { m: { code: ECHO } })).get('m') ?? ''
      const outcomes: Record<string, number> = {}
      for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'])
        outcomes[method] = (
          await fetch(url, { method, headers: { 'X-HTTP-Method-Override': 'POST' } })
        ).status
      for (const method of ['TRACE', 'PROPFIND', 'QUERY'])
        outcomes[method] = (await raw(url, head(`${method} ${new URL(url).pathname}`, 'Host: svc'))).status
      return allRefused(outcomes, [404, 405, 400])
    },
  },
  {
    id: 'B/04-webhooks/auth',
    attempt:
      'auth required: no credential, one of another tenant, one for another service, the operator token',
    severity: 'high',
    run: async ({ attacker, victim, operator }) => {
      const url =
        (await hooksOf(victim, { guarded: { code: ECHO, more: `, auth: 'required'` } })).get('guarded') ?? ''
      const { token } = await victim.api.post<{ token: string }>('/service-keys', {
        name: 'other',
        permissions: { 'webhook:other': ['execute'] },
      })
      const status = async (headers: Record<string, string>) =>
        (await fetch(url, { method: 'POST', headers })).status
      const right = await status({ Authorization: `Bearer ${victim.api.key}` })
      expected(right === 200, `the right credential: ${right}`)
      return allRefused(
        {
          none: await status({}),
          'another tenant': await status({ Authorization: `Bearer ${attacker.api.key}` }),
          'another service': await status({ Authorization: `Bearer ${token}` }),
          operator: await status({ Authorization: `Bearer ${operator.key}` }),
        },
        [401, 403, 404],
      )
    },
  },
  {
    id: 'B/04-webhooks/caller-token',
    attempt: "the caller's token is passed to the function, whose deployer could use it",
    severity: 'medium',
    run: async ({ attacker, operator }) => {
      const urls = await hooksOf(attacker, {
        guarded: { code: ECHO, more: `, auth: 'required'` },
        open: { code: ECHO },
      })
      const { token: service } = await attacker.api.post<{ token: string }>('/service-keys', {
        name: 'caller',
        permissions: { 'webhook:*': ['execute'] },
      })
      const seen: string[] = []
      for (const [name, tokens] of [
        ['guarded', [attacker.api.key, service]],
        ['open', [attacker.api.key, service, operator.key]],
      ] as const)
        for (const token of tokens) {
          const got = await called(urls.get(name) ?? '', {
            Authorization: `Bearer ${token}`,
            'Proxy-Authorization': `Bearer ${token}`,
          })
          if (JSON.stringify(got).includes(token)) seen.push(`${name}: ${token.slice(0, 8)}…`)
        }
      expected(seen.length === 0, `the function saw ${seen.join(', ')}`)
      return 'Authorization is left out if the service has checked it, and if it contains a token of the service'
    },
  },
  {
    id: 'B/04-webhooks/forwarded',
    attempt: 'X-Forwarded-For, X-Real-IP and Forwarded of the client decide its address',
    severity: 'medium',
    run: async ({ attacker, fresh }) => {
      const url = (await hooksOf(attacker, { ip: { code: ECHO } })).get('ip') ?? ''
      for (const headers of [
        { 'X-Forwarded-For': '10.0.0.1' },
        { 'X-Real-IP': '10.0.0.1' },
        { Forwarded: 'for=10.0.0.1' },
        { 'X-Forwarded-For': '<script>alert(1)</script>' },
      ])
        expected((await called(url, headers))['ip'] === '127.0.0.1', `believed: ${JSON.stringify(headers)}`)
      const behind = await fresh({ SVC_TRUSTED_PROXIES: '1' })
      const proxied = (await hooksOf(behind.attacker, { ip: { code: ECHO } })).get('ip') ?? ''
      const { ip } = await called(proxied, { 'X-Forwarded-For': '10.0.0.1, 203.0.113.9' })
      await behind.close()
      expected(ip === '203.0.113.9', `behind one proxy: ${String(ip)}`)
      return 'the address is that of the connection; behind a trusted proxy, the one that the proxy appended'
    },
  },
  {
    id: 'B/04-webhooks/host',
    attempt: 'Host, X-Forwarded-Host and absolute request targets in webhook URLs and original-url',
    severity: 'medium',
    run: async ({ attacker, server }) => {
      const url = (await hooksOf(attacker, { host: { code: ECHO } })).get('host') ?? ''
      const { pathname } = new URL(url)
      for (const [target, host] of [
        [pathname, 'evil.example'],
        [`http://evil.example${pathname}`, 'evil.example'],
      ] as const) {
        const { text } = await raw(
          server.url,
          head(`POST ${target}`, `Host: ${host}`, 'X-Forwarded-Host: evil.example', 'Content-Length: 0'),
        )
        expected(text.includes(`"original-url":"${url}"`), `original-url: ${text.slice(-400)}`)
      }
      const { text } = await attacker.api.send('GET', '/projects', {
        headers: { 'X-Forwarded-Host': 'evil.example' },
      })
      expected(!text.includes('evil.example'), 'a list contains the host')
      return 'original-url is the URL of the service'
    },
  },
  {
    id: 'B/04-webhooks/host/original-url',
    attempt: 'behind a TLS proxy, original-url says http:// and what Host says',
    severity: 'low',
    run: async ({ fresh }) => {
      const { attacker, server, close } = await fresh({ SVC_PUBLIC_URL: 'https://svc.example' })
      const listed = (await hooksOf(attacker, { tls: { code: ECHO } })).get('tls') ?? ''
      const seen = await called(`${listed.replace('https://svc.example', server.url)}?a=b%20c`, {
        'X-Forwarded-Proto': 'http',
      })
      await close()
      expected(seen['original-url'] === `${listed}?a=b%20c`, String(seen['original-url']))
      return 'original-url is the listed URL with the query string'
    },
  },
])

const REPLY = '({ body }) => body'

/** The reply of the service to a webhook whose function returns `reply`, as it is on the connection. */
const replied = async (url: string, reply: unknown): Promise<string> => {
  const body = JSON.stringify(reply)
  const { pathname } = new URL(url)
  const { text } = await raw(
    url,
    `${head(`POST ${pathname}`, 'Host: svc', 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)}${body}`,
  )
  return text
}

const headerNames = (text: string): string[] =>
  text
    .slice(0, text.indexOf('\r\n\r\n'))
    .split('\r\n')
    .slice(1)
    .map((line) => line.slice(0, line.indexOf(':')).toLowerCase())

attackSuite('replies of functions', [
  {
    id: 'B/05-reply-headers',
    attempt: 'header injection, framing, hop-by-hop headers and odd statuses',
    severity: 'high',
    run: async ({ attacker }) => {
      const url = (await hooksOf(attacker, { reply: { code: REPLY } })).get('reply') ?? ''
      const smuggled = 'HTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n'
      const replies = [
        { status: 200, headers: { 'X-A': `a\r\nX-Evil: 1` } },
        { status: 200, headers: { 'X-A\r\nX-Evil': '1' } },
        { status: 200, headers: { 'X-A': `a\n${smuggled}` } },
        { status: 200, headers: { 'Content-Length': '1' }, body: smuggled },
        { status: 200, headers: { 'Transfer-Encoding': 'chunked' }, body: `0\r\n\r\n${smuggled}` },
        { status: 200, headers: { Connection: 'X-Evil, keep-alive', 'X-Evil': '1' } },
        { status: 200, headers: { Connection: 'upgrade', Upgrade: 'websocket' } },
        { status: 200, headers: { __proto__: { 'x-evil': '1' } } },
        { status: 200, headers: ['X-Evil'] },
        ...[100, 101, 199, 600, -1, 200.5, '200', 204, 304].map((status) => ({ status, body: smuggled })),
      ]
      for (const reply of replies) {
        const text = await replied(url, reply)
        const lines = text.slice(0, text.indexOf('\r\n\r\n'))
        expected(/^HTTP\/1\.1 [2345]\d\d /.test(text), `${JSON.stringify(reply)}: ${text.slice(0, 60)}`)
        expected(!/\nx-evil|upgrade/i.test(lines), `${JSON.stringify(reply)}: ${lines}`)
        const length = Number(/content-length: (\d+)/i.exec(lines)?.[1] ?? 0)
        const rest = Buffer.byteLength(text.slice(lines.length + 4))
        expected(
          /transfer-encoding/i.test(lines) || length === rest || rest === 0,
          `${length} of ${rest} bytes: ${lines}`,
        )
      }
      return `${replies.length} replies, none with a header, a length or a second reply of the function's choice`
    },
  },
  {
    id: 'B/05-reply-headers/own-fault',
    attempt: "replies that cannot be sent are reported as the service's own failure, with stacks in its log",
    severity: 'low',
    run: async ({ attacker, server }) => {
      const url = (await hooksOf(attacker, { reply: { code: REPLY } })).get('reply') ?? ''
      const before = server.output.length
      for (const headers of [
        { Trailer: 'X-A' },
        { 'bad name': '1' },
        { 'X-A': 'ü€' },
        { 'X-A': {} },
        { 'X-A': 'x'.repeat(1 << 20) },
      ]) {
        const text = await replied(url, { status: 200, headers })
        expected(text.startsWith('HTTP/1.1 200') || text.includes('function_failed'), text.slice(-200))
      }
      const log = server.output.slice(before).join('')
      expected(!/A request failed|at .*\.ts/.test(log), log)
      return 'the run fails with an error that names the header; nothing is logged'
    },
  },
  {
    id: 'B/05-reply-headers/takeover',
    attempt: 'headers that speak for the whole origin, or to the proxy in front',
    severity: 'medium',
    run: async ({ attacker }) => {
      const url = (await hooksOf(attacker, { reply: { code: REPLY } })).get('reply') ?? ''
      const names = [
        'Set-Cookie',
        'Strict-Transport-Security',
        'Clear-Site-Data',
        'Alt-Svc',
        'Service-Worker-Allowed',
        'Public-Key-Pins',
        'Origin-Agent-Cluster',
        'NEL',
        'Report-To',
        'Accept-CH',
        'Use-As-Dictionary',
        'WWW-Authenticate',
        'X-Accel-Redirect',
        'X-Accel-Buffering',
        'x-ACCEL-charset',
        'X-Sendfile',
        'X-Sendfile-Type',
        'X-LiteSpeed-Location',
        'X-Lighttpd-Send-File',
        'X-Reproxy-URL',
        'X-Envoy-Immediate-Health-Check-Fail',
        'L5d-Success-Class',
        'Surrogate-Control',
        'Server',
        'Via',
        'RateLimit',
        'Idempotency-Replayed',
      ]
      const text = await replied(url, {
        status: 401,
        headers: Object.fromEntries(names.map((name) => [name, 'x'])),
      })
      const passed = headerNames(text).filter((name) => names.some((one) => one.toLowerCase() === name))
      expected(passed.length === 0, `passed on: ${passed.join(', ')}`)
      return `${names.length} headers, none passed on`
    },
  },
  {
    id: 'B/05-reply-headers/repeated',
    attempt: 'a reply of 60 KB whose header of 8 KB has 17,500 empty values: 140 MB on the connection',
    severity: 'high',
    run: async ({ attacker }) => {
      const code = `() => ({ status: 200, headers: { ['x-' + 'a'.repeat(8000)]: Array(17_500).fill('') } })`
      const url = (await hooksOf(attacker, { repeated: { code } })).get('repeated') ?? ''
      const { text } = await raw(url, head(`POST ${new URL(url).pathname}`, 'Host: svc', 'Content-Length: 0'))
      expected(text.length < 10_000, `the reply had ${text.length} bytes`)
      expected(text.startsWith('HTTP/1.1 500'), `the reply: ${text.slice(0, 100)}`)
      return 'refused as an error of the function'
    },
  },
  {
    id: 'B/05-reply-headers/html',
    attempt: 'HTML of a function runs on the origin of the API and of /docs',
    severity: 'medium',
    run: async ({ attacker, server }) => {
      const url = (await hooksOf(attacker, { reply: { code: REPLY } })).get('reply') ?? ''
      for (const headers of [
        { 'Content-Type': 'text/html' },
        {
          'Content-Type': 'text/html',
          'Content-Security-Policy': 'sandbox allow-scripts allow-same-origin; script-src *',
        },
        { 'Content-Type': 'image/svg+xml', 'content-security-policy': ['a', 'b'] },
        { 'Content-Type': 'text/plain', 'X-Content-Type-Options': 'sniff' },
      ]) {
        const text = await replied(url, { status: 200, headers, body: '<script>document.title=1</script>' })
        const [policy] = /content-security-policy: .*/i.exec(text) ?? ['']
        expected(
          /content-security-policy: sandbox(,|\r|$)/i.test(policy),
          `${JSON.stringify(headers)}: ${policy}`,
        )
        expected(/x-content-type-options: nosniff/i.test(text), 'the type is guessed')
      }
      const docs = await fetch(`${server.url}/docs`)
      expected(
        docs.headers.get('cross-origin-opener-policy') === 'same-origin',
        'the docs page has no opener policy',
      )
      return 'every reply has the policy sandbox and nosniff; the docs page shares no window'
    },
  },
])
