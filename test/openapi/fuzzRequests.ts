import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { type Json, spoilt, text, valid, wild } from './fuzzValues.ts'
import { resolved } from './liveReply.ts'

export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Json }[]
  readonly bodies: Readonly<Record<string, { readonly schema?: Json; readonly example?: unknown }>>
}

/** The credential of a request; `own` is the one that the operation is meant for. */
const CALLERS = [
  'own',
  'none',
  'other',
  'operator',
  'session',
  'garbage',
  'basic',
  'long',
  'unicode',
] as const

/** A request to send. Existing resources appear in it as `{known: kind}`. */
export interface FuzzRequest {
  readonly operation: string
  readonly method: string
  /** The path, and whether it still leads to the operation. */
  readonly segments: readonly (string | Known)[]
  readonly routed: boolean
  readonly query: string
  readonly caller: (typeof CALLERS)[number]
  readonly headers: Readonly<Record<string, string>>
  /** The text, repeated. */
  readonly body?: { readonly text: string; readonly times: number; readonly latin1?: boolean }
}

/** The name of a path parameter and the environment of its value. */
export interface Known {
  readonly known: string
  readonly whose: 'own' | 'other'
}

/** Every operation of the document, its references resolved. */
export const operationsOf = (document: OpenApiDocument): Operation[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: String(operation['operationId']),
      method: method.toUpperCase(),
      path,
      parameters: resolved(document, operation['parameters'] ?? []) as Operation['parameters'],
      bodies: ((resolved(document, operation['requestBody']) as Json | undefined)?.['content'] ??
        {}) as Operation['bodies'],
    })),
  )

/** The parameters of operations that need one of several. */
const QUERIES: Readonly<Record<string, string>> = { replayAudit: 'stream=installation' }

/** The request that the document shows: own resources and the example body. */
export const exampleOf = ({ id, method, path, bodies }: Operation): FuzzRequest => {
  const [type, { example } = {}] = Object.entries(bodies)[0] ?? []
  const text = example === undefined ? 'text' : JSON.stringify(example)
  const segments = path.split('/').slice(1)
  return {
    operation: id,
    method,
    segments: segments.map((part) =>
      part.startsWith('{') ? { known: part.slice(1, -1), whose: 'own' } : part,
    ),
    routed: true,
    query: QUERIES[id] ?? '',
    caller: 'own',
    headers: type === undefined ? {} : { 'Content-Type': type },
    ...(type !== undefined && { body: { text, times: 1 } }),
  }
}

export const requestsTo = (operations: readonly Operation[]): fc.Arbitrary<FuzzRequest> =>
  fc.constantFrom(...operations).chain(requestTo)

const requestTo = (operation: Operation): fc.Arbitrary<FuzzRequest> =>
  fc
    .record({
      segments: fc.tuple(...operation.path.split('/').slice(1).map(segment)),
      method: mostly(
        15,
        fc.constant(operation.method),
        fc.constantFrom('GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'),
      ),
      tail: mostly(20, fc.constant(''), fc.constantFrom('/', '//', '/..', '/%00', '/more', '%')),
      query: queryOf(operation),
      caller: mostly(3, fc.constant('own' as const), fc.constantFrom(...CALLERS)),
      odd: mostly(3, fc.constant({}), oddHeaders),
      sent: bodyOf(operation),
    })
    .map(({ segments, method, tail, query, caller, odd, sent: { type, ...body } }) => ({
      operation: operation.id,
      method,
      segments: tail === '' ? segments : [...segments.slice(0, -1), ...end(segments.at(-1), tail)],
      routed: method === operation.method && tail === '' && !segments.includes(''),
      query,
      caller,
      headers: { ...(type !== undefined && { 'Content-Type': type }), ...odd },
      ...(body.text !== undefined && { body: { ...body, text: body.text } }),
    }))

const end = (last: string | Known = '', tail: string): (string | Known)[] =>
  typeof last === 'string' ? [last + tail] : [last, tail.replace(/^\//, '')]

/** Chooses the first `times` times as often as the second. */
const mostly = <T, U>(times: number, usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>) =>
  fc.oneof({ weight: times, arbitrary: usual }, { weight: 1, arbitrary: odd })

const escaped = (value: string) => encodeURIComponent(value.toWellFormed()).replace(/^\.{1,2}$/, '%2E%2E')

const segment = (part: string): fc.Arbitrary<string | Known> => {
  const [, name] = /^\{(\w+)\}$/.exec(part) ?? []
  if (name === undefined) return fc.constant(part)
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant({ known: name, whose: 'own' as const }) },
    { weight: 2, arbitrary: fc.constant({ known: name, whose: 'other' as const }) },
    { weight: 1, arbitrary: fc.uuid() },
    { weight: 2, arbitrary: text.map(escaped) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '',
        '.',
        '..',
        '%2F',
        '%2f..%2f..',
        '%00',
        '%',
        '%zz',
        '%ff',
        '%c0%af',
        '%',
        '*',
        ':a',
        '(',
        '[',
        '"',
        ';',
        '+',
        '%20',
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom(300, 5000, 15_000, 40_000).map((length) => 'a'.repeat(length)) },
  )
}

const queryOf = ({ parameters }: Operation): fc.Arbitrary<string> => {
  const documented = parameters.filter((parameter) => parameter.in === 'query')
  const pair = ({ name, schema }: Operation['parameters'][number]) =>
    fc
      .oneof(
        valid(schema).map(String),
        wild.map((value) =>
          typeof value === 'string' ? value : (JSON.stringify(value) ?? '').slice(0, 1000),
        ),
      )
      .map((value) => `${name}=${escaped(value)}`)
  const pairs =
    documented.length === 0
      ? fc.constant('')
      : fc
          .subarray(documented)
          .chain((some) => fc.tuple(...some.map(pair)))
          .map((all) => all.join('&'))
  return mostly(
    4,
    pairs,
    fc.constantFrom(
      '?',
      '&&=&',
      '%',
      '%zz=1',
      'limit=1&limit=2',
      'limit[]=1',
      'a[b][c]=d',
      'limit=%00',
      '__proto__=1',
      '=',
      `a=${'x'.repeat(8000)}`,
      'a&'.repeat(3000),
    ),
  )
}

const oddHeaders: fc.Arbitrary<Record<string, string>> = fc.oneof(
  fc
    .constantFrom('', ' ', 'a', 'x'.repeat(255), 'x'.repeat(256), '\u00ff', '"')
    .map((key) => ({ 'Idempotency-Key': key })),
  fc.constantFrom('', '-1', 'x', '9'.repeat(40), 'a,b', 'start', '*').map((id) => ({ 'Last-Event-ID': id })),
  fc
    .constantFrom(
      'bytes=0-',
      'bytes=-1',
      'bytes=9-1',
      'bytes=a-b',
      'bytes=0-0,2-3',
      `bytes=${'9'.repeat(400)}-`,
    )
    .map((Range) => ({ Range })),
  fc.constantFrom('text/event-stream', 'text/html', '*/*;q=0', 'x', '').map((Accept) => ({ Accept })),
  fc
    .constantFrom('gzip', 'br', 'deflate', 'identity', 'nonsense')
    .map((coding) => ({ 'Content-Encoding': coding })),
  fc.constantFrom('*', '"x"', 'W/', 'x').map((tag) => ({ 'If-None-Match': tag })),
  fc.constantFrom('', 'a', 'a:b:c', '[::', 'x'.repeat(300), '%00').map((Host) => ({ Host })),
  fc.constantFrom('::1', 'x', ',,,').map((address) => ({
    'X-Forwarded-For': address,
    'X-Forwarded-Host': address,
    'X-Forwarded-Proto': address,
  })),
  fc.constantFrom(8000, 17_000).map((length) => ({ 'X-Long': 'y'.repeat(length) })),
)

interface Sent {
  readonly text?: string
  readonly times: number
  readonly latin1?: boolean
  readonly type?: string
}

const JSON_TYPE = 'application/json'
const nothing: Sent = { times: 1 }
const jsonOf = (value: unknown): Sent => ({ text: JSON.stringify(value) ?? '', times: 1, type: JSON_TYPE })

const bodyOf = ({ bodies }: Operation): fc.Arbitrary<Sent> => {
  const json = bodies[JSON_TYPE]
  if (json) {
    const good = fc.oneof(
      valid(json.schema ?? {}),
      ...(json.example === undefined ? [] : [fc.constant(json.example)]),
    )
    return fc.oneof(
      { weight: 4, arbitrary: good.map(jsonOf) },
      {
        weight: 4,
        arbitrary: fc
          .tuple(good, fc.nat(), wild)
          .map(([value, at, instead]) => jsonOf(spoilt(value, at, instead))),
      },
      { weight: 1, arbitrary: wild.map(jsonOf) },
      { weight: 1, arbitrary: fc.tuple(good, types).map(([value, type]) => ({ ...jsonOf(value), type })) },
      { weight: 2, arbitrary: raw.map((sent) => ({ type: JSON_TYPE, ...sent })) },
    )
  }
  const type = Object.keys(bodies)[0]
  if (type?.startsWith('multipart/') === true) return fc.oneof(forms, raw)
  return type === undefined ? mostly(8, fc.constant(nothing), raw) : fc.oneof(raw, fc.constant(nothing))
}

const types = fc.constantFrom(
  'text/plain',
  'application/xml',
  'application/json; charset=nonsense',
  'application/json;charset=utf-16',
  'multipart/form-data',
  '',
  'x',
  '/',
  'application/x-www-form-urlencoded',
)

/** Bodies that no operation expects. */
const raw: fc.Arbitrary<Sent> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }).map((value) => ({ text: value.toWellFormed(), times: 1 })),
  fc
    .uint8Array({ maxLength: 200 })
    .map((bytes) => ({ text: Buffer.from(bytes).toString('latin1'), times: 1, latin1: true })),
  fc
    .constantFrom(
      '',
      '{',
      '[]]',
      'nul',
      '{"a":1,}',
      '"\\ud800"',
      '\ufeff{}',
      '{"__proto__":{"a":1}}',
      '1e999',
      '{"a":1e999}',
    )
    .map((value) => ({ text: value, times: 1 })),
  fc
    .constantFrom('[', '{"a":', '[{"a":')
    .chain((open) => fc.constantFrom(1000, 50_000).map((times) => ({ text: open, times }))),
  fc.constantFrom((1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20).map((times) => ({ text: 'a', times })),
)

const part = (name: string, value: string, file = '') =>
  `--b\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`
const forms: fc.Arbitrary<Sent> = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.constantFrom('file', 'build', 'build_id', 'manifest', 'deploy', '__proto__', ''),
        text,
        fc.boolean(),
      ),
      { maxLength: 5 },
    ),
    fc.constantFrom('--b--\r\n', '', '--b', '--c--\r\n'),
    fc.constantFrom(
      'multipart/form-data; boundary=b',
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary=zz',
    ),
  )
  .map(([parts, last, type]) => ({
    text:
      parts
        .map(([name, value, isFile]) => part(name, value.toWellFormed(), isFile ? '; filename="a.zip"' : ''))
        .join('') + last,
    times: 1,
    type,
  }))
