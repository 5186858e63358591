import { connect } from 'node:net'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { allRefused, bearer, expected, head, raw } from './raw.ts'

/** A GET that a smuggled request would be. */
const SECOND = 'GET /healthz HTTP/1.1\r\nHost: svc\r\n\r\n'

attackSuite('HTTP', [
  {
    id: 'B/07-http/smuggling',
    attempt:
      'two framings, folded and malformed headers, odd chunks: a second request in the body of the first',
    severity: 'high',
    run: async ({ server: { url } }) => {
      const outcomes: Record<string, number> = {}
      for (const [what, headers] of [
        ['CL and TE', ['Content-Length: 4', 'Transfer-Encoding: chunked']],
        ['TE and CL', ['Transfer-Encoding: chunked', 'Content-Length: 4']],
        ['two lengths', ['Content-Length: 0', `Content-Length: ${SECOND.length}`]],
        ['equal lengths', ['Content-Length: 0', 'Content-Length: 0']],
        ['a list of lengths', ['Content-Length: 0, 5']],
        ['signed', ['Content-Length: +0']],
        ['hex', ['Content-Length: 0x0']],
        ['negative', ['Content-Length: -1']],
        ['TE twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']],
        ['unknown TE', ['Transfer-Encoding: xchunked']],
        ['space before the colon', ['Transfer-Encoding : chunked']],
        ['fold', ['X-A: b', ' Transfer-Encoding: chunked', 'Transfer-Encoding:', ' chunked']],
        ['bare CR', ['X-A: b\rTransfer-Encoding: chunked']],
        ['NUL', ['X-A: b\0c']],
      ] as const) {
        const { text, status } = await raw(
          url,
          `POST /v1/none HTTP/1.1\r\nHost: svc\r\n${headers.join('\r\n')}\r\n\r\n0\r\n\r\n${SECOND}`,
        )
        expected(!text.includes('"ok"'), `${what}: the second request was answered`)
        outcomes[what] = status
      }
      return allRefused(outcomes, [400])
    },
  },
  {
    id: 'B/07-http/two-hosts',
    attempt: 'two Host headers, no Host, or one that is no host',
    severity: 'low',
    run: async ({ server: { url }, attacker }) => {
      const tried = async (line: string, ...headers: readonly string[]) =>
        (await raw(url, head(line, ...headers, bearer(attacker)))).status
      const outcomes: Record<string, number> = {
        two: await tried('GET /v1/env', 'Host: svc', 'Host: other'),
        equal: await tried('GET /v1/env', 'Host: svc', 'host: svc'),
        none: await tried('GET /v1/env'),
        'other than the target': await tried('GET http://other/v1/env', 'Host: svc'),
        'target with user': await tried('GET http://svc@other/v1/env', 'Host: other'),
      }
      for (const host of [
        'a b',
        'a@b',
        'a/b',
        'a,b',
        'http://a',
        '*',
        '[::1',
        'a:b',
        'a\tb',
        'a#b',
        'a?b',
        '%61',
      ])
        outcomes[host] = await tried('GET /v1/env', `Host: ${host}`)
      return allRefused(outcomes, [400])
    },
  },
  {
    id: 'B/07-http/limits',
    attempt: 'huge headers and request lines, many headers and query fields',
    severity: 'medium',
    run: async ({ server: { url }, attacker }) => {
      const key = bearer(attacker)
      const status = async (line: string, ...headers: readonly string[]) =>
        (await raw(url, head(line, 'Host: svc', ...headers))).status
      return allRefused(
        {
          'one header': await status('GET /v1/env', key, `X-A: ${'x'.repeat(20_000)}`),
          line: await status(`GET /${'x'.repeat(100_000)}`, key),
          'many headers': await status(
            'GET /v1/env',
            key,
            ...Array.from({ length: 3000 }, (_, n) => `X-${n}: 1`),
          ),
          query: await status(`GET /v1/env?${'a&'.repeat(7900)}`, key),
          'query without a key': await status(`GET /status?${'a&'.repeat(7900)}`),
        },
        [400, 431],
      )
    },
  },
  {
    id: 'B/07-http/slow',
    attempt: 'connections held by bodies that no handler reads, slow headers, silence and forms that trickle',
    severity: 'medium',
    run: async ({ server: { url }, attacker }) => {
      const { port } = new URL(url)
      await attacker.api.post('/projects', { name: 'slow' })
      const key = bearer(attacker)
      const boundary = '\r\n\r\n--b\r\nContent-Disposition: form-data; name="hash"\r\n\r\n'
      const starts = {
        'body of GET': `GET /status HTTP/1.1\r\nHost: svc\r\nContent-Length: 99999\r\n\r\n`,
        'body of GET with a key': `GET /v1/env HTTP/1.1\r\nHost: svc\r\n${key}\r\nContent-Length: 99999\r\n\r\n`,
        'chunks of DELETE': `DELETE /v1/none HTTP/1.1\r\nHost: svc\r\nTransfer-Encoding: chunked\r\n\r\n`,
        'body of OPTIONS': `OPTIONS /v1/env HTTP/1.1\r\nHost: svc\r\nContent-Length: 99999\r\n\r\n`,
        'JSON body': `POST /v1/events HTTP/1.1\r\nHost: svc\r\n${key}\r\nContent-Length: 99999\r\n\r\n{`,
        form: `POST /v1/projects/slow/builds HTTP/1.1\r\nHost: svc\r\n${key}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 99999${boundary}`,
        headers: `GET /v1/env HTTP/1.1\r\nHost: svc\r\nX-A: `,
        'first line': 'GE',
        silence: '',
      }
      const open = new Set(Object.keys(starts))
      const sockets = Object.entries(starts).map(([what, start]) => {
        const socket = connect({ port: Number(port), host: '127.0.0.1' })
        socket.on('error', () => {}).on('close', () => open.delete(what))
        socket.resume()
        socket.write(start)
        const byte = what.startsWith('chunks') ? '1\r\nx\r\n' : 'x'
        const trickle = setInterval(() => {
          if (what !== 'silence' && !socket.destroyed) socket.write(byte)
        }, 500)
        socket.on('close', () => clearInterval(trickle))
        return socket
      })
      try {
        await until(() => open.size === 0, { timeoutMs: 80_000 })
      } catch {
        throw new Error(`still open: ${[...open].join(', ')}`)
      } finally {
        for (const socket of sockets) socket.destroy()
      }
      return `${sockets.length} connections, all ended by the service`
    },
  },
  {
    id: 'B/07-http/connections',
    attempt: 'more connections from one address than the service should hold',
    severity: 'low',
    run: async ({ server: { url }, victim }) => {
      const { port } = new URL(url)
      let closed = 0
      const sockets = Array.from({ length: 1400 }, () => {
        const socket = connect({ port: Number(port), host: '127.0.0.1' })
        return socket.on('error', () => {}).on('close', () => closed++)
      })
      await until(() => sockets.length - closed <= 1000)
      const left = sockets.length - closed
      for (const socket of sockets) socket.destroy()
      await until(async () => (await victim.api.send('GET', '/env').catch(() => null))?.status === 200)
      return `at most 1000 connections of one address stay open; ${sockets.length - left} of ${sockets.length} were closed`
    },
  },
  {
    id: 'B/07-http/connections/pipelined',
    attempt: 'a thousand requests in one packet on each of twenty connections',
    severity: 'high',
    run: async ({ server: { url }, attacker, victim }) => {
      const port = Number(new URL(url).port)
      const one = ['GET /v1/env HTTP/1.1', 'Host: svc', bearer(attacker), '', ''].join('\r\n')
      let closed = 0
      for (let n = 0; n < 20; n++) {
        const socket = connect({ port, host: '127.0.0.1' })
        socket.on('error', () => {}).on('close', () => closed++)
        socket.resume().write(one.repeat(1000))
      }
      await until(() => closed === 20)
      const { status } = await victim.api.send('GET', '/env')
      expected(status === 200, `the victim got ${status}`)
      return 'each connection is closed with its ninth request without a reply'
    },
  },
  {
    id: 'B/07-http/connections/network',
    attempt:
      'more requests in progress than one client may have, each from another address of its IPv6 network',
    severity: 'low',
    run: async (target) => {
      const { server, attacker, victim } = await target.fresh({ SVC_TRUSTED_PROXIES: '1' })
      const port = Number(new URL(server.url).port)
      let refused = 0
      const sockets = Array.from({ length: 1100 }, (_, n) => {
        const socket = connect({ port, host: '127.0.0.1' })
        const forwarded = `X-Forwarded-For: 2001:db8::${n.toString(16)}`
        const headers = [bearer(attacker), forwarded, 'Host: svc', 'Content-Length: 9', '', '']
        socket.write(['POST /v1/events HTTP/1.1', ...headers].join('\r\n'))
        return socket
          .on('error', () => {})
          .on('data', (text) => {
            if (String(text).startsWith('HTTP/1.1 429')) refused++
          })
      })
      await until(() => refused >= 100)
      await until(async () => (await victim.api.send('GET', '/env')).status === 200)
      for (const socket of sockets) socket.destroy()
      return `${refused} of ${sockets.length} requests were refused`
    },
  },
])
