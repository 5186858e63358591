import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { newId } from '../../src/ids.ts'
import { upload } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { attackSuite } from './attack.ts'
import { bearer, expected, head, raw } from './raw.ts'
import type { Target } from './target.ts'

/** Values as JSON, because some of them exist only there. */
const ODD: Readonly<Record<string, string>> = {
  nul: '"a\\u0000b"',
  'lone surrogate': '"\\ud800"',
  proto: '"__proto__"',
  emoji: `"${'😀'.repeat(5000)}"`,
  prototypes: '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"toString":1}',
  beyond: '9007199254740993',
  huge: '1e400',
  duplicates: '{"a":1,"a":2}',
}

/** The same in a path or a query. */
const ODD_PARTS = ['%00', '%ed%a0%80', '__proto__', '%7b%22$gt%22:%22%22%7d']

interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly string[]
  readonly properties: readonly string[]
}

interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: {
    readonly content?: Readonly<
      Record<string, { readonly schema?: { readonly properties?: object; readonly $ref?: string } }>
    >
  }
}

const operationsOf = async ({ server }: Target): Promise<Operation[]> => {
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApiDocument
  const schemas =
    (document as { components?: { schemas?: Record<string, { properties?: object }> } }).components
      ?.schemas ?? {}
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    path.startsWith('/v1/') && !/sign-in|subscribe/.test(path)
      ? Object.entries(methods as Record<string, Described>).map(
          ([method, { parameters = [], requestBody }]) => {
            const schema = requestBody?.content?.['application/json']?.schema
            const properties =
              schema?.properties ?? schemas[schema?.$ref?.split('/').at(-1) ?? '']?.properties ?? {}
            return {
              method: method.toUpperCase(),
              path: path.slice(3),
              parameters: parameters.filter((one) => one.in === 'query').map(({ name }) => name),
              properties: Object.keys(properties),
            }
          },
        )
      : [],
  )
}

/** Values with which most operations get past their first checks. */
const valid = (project: string): Record<string, string> => ({
  project,
  ref: 'main%2Ff',
  key: 'KEY',
  path: 'odd',
  part_number: '1',
})

const filled = (path: string, values: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? newId())

interface Tried {
  readonly method: string
  readonly path: string
  readonly body?: string
}

/** Requests that are sent at a time. */
const AT_ONCE = 16

/** Sends the requests. Throws if a reply blames the service. */
const sent = async (api: Api, requests: readonly Tried[]): Promise<string> => {
  const failed: string[] = []
  const left = requests.values()
  const sendAll = async (): Promise<void> => {
    for (const { method, path, body } of left) {
      const { status, text } = await api.send(method, path, body === undefined ? {} : { body })
      if (status >= 500) failed.push(`${method} ${path} ${body ?? ''}: ${status} ${text}`.slice(0, 400))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendAll))
  expected(failed.length === 0, `${failed.length} of ${requests.length}: ${failed.slice(0, 5).join(' / ')}`)
  return `${requests.length} requests, none fails in the service`
}

/** Fields that have a usual value beside an odd one, so that it gets past the first check. */
const USUAL = /^(event_type|name|path|key|value|permissions|code|domain)$/

const usual = (property: string): string =>
  `${JSON.stringify(property)}:${property === 'permissions' ? '{}' : JSON.stringify(`x${newId()}`)}`

const newProject = async (api: Api): Promise<string> => {
  const name = `p-${newId()}`
  await api.post('/projects', { name })
  return name
}

attackSuite('odd values', [
  {
    id: 'B/08-bodies/odd',
    attempt:
      'send each field of each operation as NUL, lone surrogates, prototypes, huge numbers and long texts',
    severity: 'medium',
    run: async (target) => {
      const { api } = target.attacker
      const values = valid(await newProject(api))
      const requests = (await operationsOf(target)).flatMap(({ method, path, properties }) =>
        properties.flatMap((property) =>
          Object.values(ODD).map((value): Tried => {
            const others = properties.filter((one) => one !== property && USUAL.test(one))
            const fields = [`${JSON.stringify(property)}:${value}`, ...others.map(usual)]
            return { method, path: filled(path, values), body: `{${fields.join()}}` }
          }),
        ),
      )
      const outcome = await sent(api, requests)
      await target.victim.api.get('/env')
      return outcome
    },
  },
  {
    id: 'B/08-bodies/odd/paths',
    attempt: 'send each parameter of each path and query as NUL, invalid UTF-8, operators and long texts',
    severity: 'medium',
    run: async (target) => {
      const { api } = target.attacker
      const values = valid(await newProject(api))
      const requests = (await operationsOf(target)).flatMap(({ method, path, parameters }) =>
        ODD_PARTS.flatMap((part) => {
          const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
          const paths = [
            ...names.map((name) => filled(path, { ...values, [name]: part })),
            ...parameters.map((name) => `${filled(path, values)}?${name}=${part}`),
          ]
          const hasBody = method !== 'GET' && method !== 'DELETE'
          return paths.map((each): Tried => ({ method, path: each, ...(hasBody && { body: '{}' }) }))
        }),
      )
      return sent(api, requests)
    },
  },
  {
    id: 'B/08-bodies/forms/names',
    attempt:
      'upload forms with fields named like prototypes, twice, without names, with other boundaries and encodings',
    severity: 'low',
    run: async ({ attacker: { api } }) => {
      const project = `p-${newId()}`
      await api.post('/projects', { name: project })
      const { bytes, hash } = await zipBuild({ 'main.js': 'export const f = () => 1' })
      const zip = bytes.toString('latin1')
      const part = (disposition: string, content: string, more = ''): string =>
        `--B\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n${content}\r\n`
      const file = part('name="file"; filename="build.zip"', zip)
      const hashed = part('name="hash"', hash)
      const forms: Record<string, string> = {
        proto: part('name="__proto__"', 'x') + file + hashed,
        'proto twice': part('name="__proto__"', 'x') + part('name="__proto__"', 'y') + file + hashed,
        'proto as a file': part('name="__proto__"; filename="x"', zip) + hashed,
        constructor: part('name="constructor"', 'x') + file + hashed,
        toString: part('name="toString"', 'x') + file + hashed,
        'nested names': part('name="file[filepath]"', '/etc/passwd') + hashed,
        'hash as a file': part('name="hash"; filename="h"', hash) + file,
        'file as a text': part('name="file"', zip) + hashed,
        'two hashes': hashed + part('name="hash"', '0'.repeat(64)) + file,
        'no name': part('filename="x"', zip) + hashed,
        'a path as the name of the file': part('name="hash"; filename="../../../../tmp/evil"', hash),
        'another encoding':
          part(
            'name="file"; filename="b"',
            bytes.toString('base64'),
            'Content-Transfer-Encoding: x-uuencode\r\n',
          ) + hashed,
        'a form in a form': part(
          'name="file"',
          file + hashed,
          'Content-Type: multipart/mixed; boundary=B\r\n',
        ),
        'no end': file.slice(0, -20),
        empty: '',
      }
      const wrong: string[] = []
      const types: Record<string, string> = {
        usual: 'multipart/form-data; boundary=B',
        quoted: 'multipart/form-data; boundary="B"',
        other: 'multipart/form-data; boundary=C',
        none: 'multipart/form-data',
        long: `multipart/form-data; boundary=${'B'.repeat(5000)}`,
        twice: 'multipart/form-data; boundary=C; boundary=B',
      }
      const send = async (what: string, type: string, form: string): Promise<void> => {
        const { status, text } = await api.send('POST', `/projects/${project}/builds`, {
          body: Buffer.from(`${form}--B--\r\n`, 'latin1'),
          headers: { 'Content-Type': type },
        })
        if (status < 400 || status >= 500) wrong.push(`${what}: ${status} ${text.slice(0, 100)}`)
      }
      for (const [what, form] of Object.entries(forms)) await send(what, types['usual'] ?? '', form)
      for (const what of ['other', 'none', 'long', 'twice'])
        await send(`boundary ${what}`, types[what] ?? '', file + hashed)
      expected(wrong.length === 0, wrong.join('; '))
      expected((await upload(api, project, { bytes, hash })).status === 201, 'a usual upload is refused')
      return `${Object.keys(forms).length + 4} forms are refused`
    },
  },
  {
    id: 'B/07-http/protocols',
    attempt:
      'switch or tunnel the protocol: WebSocket, h2c, HTTP/2 preface, CONNECT, TRACE, encoded bodies, trailers',
    severity: 'medium',
    run: async ({ server: { url }, attacker }) => {
      const key = bearer(attacker)
      const event = '{"event_type":"x","event_data":1}'
      const post = (...headers: string[]) => head('POST /v1/events', 'Host: svc', key, ...headers)
      const requests: Record<string, readonly [text: string, allowed: readonly number[]]> = {
        websocket: [
          head(
            'GET /v1/env',
            'Host: svc',
            'Upgrade: websocket',
            'Sec-WebSocket-Version: 13',
            'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
          ),
          [401],
        ],
        'websocket with a key': [
          head(
            'GET /v1/env',
            'Host: svc',
            key,
            'Upgrade: websocket',
            'Sec-WebSocket-Version: 13',
            'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
          ),
          [200, 400],
        ],
        h2c: [head('GET /v1/env', 'Host: svc', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'), [401]],
        preface: ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [0, 400, 505]],
        connect: ['CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n', [0, 400, 404, 405]],
        trace: [head('TRACE /v1/env', 'Host: svc', key), [404, 405]],
        'unknown method': [head('BREW /v1/env', 'Host: svc', key), [0, 400]],
        'options of all': [head('OPTIONS *', 'Host: svc', key), [404, 405]],
        gzip: [
          `${post('Content-Encoding: gzip', `Content-Length: ${event.length}`)}${event}`,
          [201, 400, 415],
        ],
        trailers: [
          `${post('Transfer-Encoding: chunked', 'Trailer: Authorization')}${event.length.toString(16)}\r\n${event}\r\n0\r\nAuthorization: Bearer x\r\nContent-Length: 5\r\n\r\n`,
          [201, 400],
        ],
        'long extensions': [
          `${post('Transfer-Encoding: chunked')}1;${'x'.repeat(40_000)}\r\n{\r\n0\r\n\r\n`,
          [0, 400, 413],
        ],
        'huge chunk': [`${post('Transfer-Encoding: chunked')}fffffffffffffffff\r\n{`, [0, 400]],
        'negative chunk': [`${post('Transfer-Encoding: chunked')}-1\r\n{\r\n0\r\n\r\n`, [0, 400]],
        expectation: [`${post('Expect: 200-ok', `Content-Length: ${event.length}`)}${event}`, [417, 400]],
        'nul in a header': [head('GET /v1/env', 'Host: svc', `X-A: a\0b`, key), [0, 400]],
        'name with a space': [head('GET /v1/env', 'Host: svc', `Authorization : ${key.slice(15)}`), [0, 400]],
        'version 0.9': ['GET /v1/env\r\n\r\n', [0, 400, 401]],
        'version 3': [`GET /v1/env HTTP/3.0\r\nHost: svc\r\n${key}\r\n\r\n`, [0, 400, 505]],
      }
      const wrong: string[] = []
      const seen: string[] = []
      for (const [what, [text, allowed]] of Object.entries(requests)) {
        const { status } = await raw(url, text)
        seen.push(`${what}: ${status}`)
        if (!allowed.includes(status)) wrong.push(`${what}: ${status}`)
      }
      expected(wrong.length === 0, wrong.join(', '))
      return seen.join(', ')
    },
  },
])
