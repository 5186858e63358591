import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import { attackSuite } from './attack.ts'
import { allRefused, expected, head, raw } from './raw.ts'

attackSuite('browsers', [
  {
    id: 'B/06-browser/cors',
    attempt: 'pages of other origins call the API; cookies authenticate',
    severity: 'medium',
    run: async ({ server: { url }, victim: { api } }) => {
      const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' }
      for (const [method, path] of [
        ['OPTIONS', '/v1/env'],
        ['GET', '/v1/env'],
        ['POST', '/v1/events'],
        ['OPTIONS', '/operator/orgs'],
        ['OPTIONS', '/docs'],
      ] as const) {
        const reply = await fetch(`${url}${path}`, {
          method,
          headers: { ...headers, Cookie: `Authorization=Bearer ${api.key}` },
        })
        expected(
          reply.headers.get('access-control-allow-origin') === null,
          `${method} ${path} allows the origin`,
        )
        expected(reply.headers.get('set-cookie') === null, `${method} ${path} sets a cookie`)
        expected(method === 'OPTIONS' || reply.status === 401, `${method} ${path}: ${reply.status}`)
      }
      return 'no origin is allowed, and no cookie is read or set'
    },
  },
  {
    id: 'B/06-browser/cache',
    attempt: 'replies with tokens and data are kept by caches',
    severity: 'low',
    run: async ({ victim: { api }, operator, server: { url } }) => {
      const replies = {
        session: await api.send('POST', '/sessions', { body: { permissions: {} } }),
        'service key': await api.send('POST', '/service-keys', { body: { name: 'k', permissions: {} } }),
        projects: await api.send('GET', '/projects'),
        error: await api.send('GET', '/none'),
        orgs: await operator.send('GET', `${url}/operator/orgs`),
      }
      return allRefused(
        Object.fromEntries(
          Object.entries(replies).map(([what, { headers }]) => [
            what,
            headers.get('cache-control') ?? 'none',
          ]),
        ),
        ['no-store'],
      )
    },
  },
  {
    id: 'B/06-browser/types',
    attempt: 'a browser guesses the type of JSON, errors, streams, downloads and docs',
    severity: 'low',
    run: async ({ victim: { api }, server: { url } }) => {
      const { json } = await api.send('PUT', `/files/upload/${newId()}.html`, { body: '<script>1</script>' })
      const { file_id } = (json as { data: { file_id: string } }).data
      const { build_id } = await deploy(api, 'typed', { 'main.js': 'export const a = () => 1' })
      const outcomes: Record<string, string> = {}
      for (const path of [
        '/env',
        '/%3Cscript%3E',
        `/files/${file_id}/download`,
        `/projects/typed/builds/${build_id}/download`,
      ])
        outcomes[path] = (await api.send('GET', path)).headers.get('x-content-type-options') ?? 'none'
      for (const path of ['/status', '/openapi.json', '/docs'])
        outcomes[path] = (await fetch(`${url}${path}`)).headers.get('x-content-type-options') ?? 'none'
      const malformed = await raw(url, 'nonsense\r\n\r\n')
      outcomes['not HTTP'] = /X-Content-Type-Options: (\w+)/.exec(malformed.text)?.[1] ?? 'none'
      return allRefused(outcomes, ['nosniff'])
    },
  },
  {
    id: 'B/06-browser/files',
    attempt: 'stored files run in a browser: HTML, SVG, XML, scripts',
    severity: 'high',
    run: async ({ attacker: { api } }) => {
      for (const [name, type] of [
        ['x.html', 'text/html'],
        ['x.svg', 'image/svg+xml'],
        ['x.xml', 'application/xml'],
        ['x.js', 'text/javascript'],
        ['x"; inline; a="x.html', 'text/html'],
      ] as const) {
        const { json, text } = await api.send('PUT', `/files/upload/${encodeURIComponent(name)}`, {
          body: '<script>1</script>',
          headers: { 'Content-Type': type },
        })
        expected(json !== undefined && !text.includes('"error"'), text)
        const { file_id } = (json as { data: { file_id: string } }).data
        const { headers } = await api.send('GET', `/files/${file_id}/download`)
        expected(
          (headers.get('content-disposition') ?? '').startsWith('attachment; filename='),
          `${name} is shown`,
        )
        expected(
          /sandbox; default-src 'none'/.test(headers.get('content-security-policy') ?? ''),
          `${name} has no policy`,
        )
      }
      return 'every download is an attachment with the policy sandbox'
    },
  },
  {
    id: 'B/06-browser/docs',
    attempt: 'frames and inline code on the docs page, and its assets by other names',
    severity: 'medium',
    run: async ({ server: { url } }) => {
      const policy = (await fetch(`${url}/docs`)).headers.get('content-security-policy') ?? ''
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
      ])
        expected(policy.includes(rule), `no ${rule}`)
      const outcomes: Record<string, number> = {}
      for (const name of [
        '..%2f..%2fpackage.json',
        '%2e%2e/package.json',
        'package.json',
        'constructor',
        '__proto__',
        'INDEX.html',
      ])
        outcomes[name] = (await raw(url, head(`GET /docs/${name}`, 'Host: svc'))).status
      return allRefused(outcomes, [404])
    },
  },
])
