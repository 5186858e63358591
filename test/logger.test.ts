import * as assert from 'uvu/assert'
import { newApiToken, newIssuedToken, newSecret } from '../src/access/tokens.ts'
import { newId } from '../src/ids.ts'
import { openLogger } from '../src/logger.ts'
import { suite } from './support/suite.ts'

const lines: string[] = []
const logger = openLogger((line) => void lines.push(line))
const logged = (message: string, fields?: Record<string, unknown>): string => {
  logger.info(message, fields)
  return lines.at(-1) ?? ''
}

const log = suite('a log line')

for (const [what, secret] of [
  ['an API key', newApiToken(newId())],
  ['a session', newIssuedToken('session', newId()).token],
  ['a service key', newIssuedToken('service-key', newId()).token],
  ['the operator token', `token ${newSecret('svc_operator_')}`],
  ['a webhook URL', `https://svc.example/webhook/acme/prod/orders/paid/${'aB3'.repeat(11)}`],
  ['an Authorization header', 'Authorization: Bearer opaque-token-of-another'],
  ['another Authorization header', 'authorization: opaque-token-of-another'],
  ['an engine', 'mongodb://user:hunter2@db:27017/svc'],
  ['an engine whose password is its user', 'redis://hunter2@db'],
  ['a cookie', 'Cookie: opaque-session'],
] as const)
  log(`contains no secret of ${what}`, () => {
    const tail = /(?:[_/]|Bearer |token |:)([^_/: @]+)(?:@.*)?$/.exec(secret)?.[1] ?? secret
    for (const line of [logged(`got ${secret}`), logged('got', { error: secret, stack: `at\n${secret}` })]) {
      assert.not.match(line, tail)
      assert.match(line, '***')
    }
  })

log('contains no part of a password in a URL, whatever characters it has', () => {
  for (const url of ['s3://key:PART', 'esdb+discover://:PART', 'redis://PART', 'https://user:PART'])
    for (const password of ['hid@hid', 'hid"hid', 'hid?hid', 'hid#hid', 'hid:hid', 'hid/hid']) {
      const secret = `${url.replace('PART', password)}@db:1/path`
      assert.not.match(logged(`Cannot reach ${secret}: refused`), 'hid', secret)
    }
})

log('keeps URLs without a user readable', () => {
  for (const url of [
    'file:///a/node_modules/@koa/router.js',
    'http://localhost:8080/@a/b',
    'https://h/a@b',
    's3://<key>:<secret>@h',
  ])
    assert.match(logged(`See ${url} for more`), url)
})

log('keeps ids and paths readable', () => {
  const id = newId()
  assert.match(logged('A request failed', { request_id: id, route: '/webhook/:org/:env/*rest' }), id)
  assert.not.match(lines.at(-1) ?? '', /\*\*\*/)
})

for (const [what, text] of [
  ['line breaks', 'a\r\n2026-01-01T00:00:00.000Z error forged'],
  ['separators that some viewers break at', 'a\u0085b\u2028c\u2029d'],
  ['escape sequences', 'a\u001b[2J\u009b1A'],
  ['marks that change the direction', 'a\u202eb\u2066c\u200ed\u200fe\u061cf'],
  ['characters without a width', 'a\u200bb\u2060c\ufeffd'],
] as const)
  log(`is one line without ${what}`, () => {
    for (const line of [logged(text), logged('x', { text })]) {
      assert.ok(line.endsWith('\n'))
      assert.not.match(
        line.slice(0, -1),
        /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/u,
      )
    }
  })

log('contains no value of a field that is named like a secret', () => {
  const fields = {
    headers: { Authorization: ['planted'], 'set-cookie': 'planted', accept: 'text/plain' },
    value: 'planted',
    nested: [{ token: 'planted', password: 7, master_key: { bytes: 'planted' } }],
    token: null,
  }
  const line = logged('got', fields)
  assert.not.match(line, /planted/)
  assert.match(line, '"password":"***"')
  assert.match(line, '"accept":"text/plain"')
  assert.match(line, '"token":null')
})

/** Processor time of some work in microseconds: the least of three measurements. */
const cpuOf = (work: () => void): number =>
  Math.min(
    ...[1, 2, 3].map(() => {
      const before = process.cpuUsage()
      work()
      return process.cpuUsage(before).user
    }),
  )

for (const piece of [
  'a.',
  '/webhook/',
  'a://b:',
  '://:',
  's3://',
  'aB1',
  'Bearer ',
  'cookie:',
  '-----BEGIN ',
  `${newId()}_`,
])
  log(`with many times ${JSON.stringify(piece)} takes as long as the lines of its parts`, () => {
    const PARTS = 32
    const part = piece.repeat(1024 / piece.length)
    const whole = cpuOf(() => void logged(part.repeat(PARTS)))
    const parts = cpuOf(() => {
      for (let n = 0; n < PARTS; n++) logged(part)
    })
    assert.ok(whole < Math.max(parts, 1000) * 8, `${whole} µs, ${parts} µs`)
  })

log('contains no key, however it is folded', () => {
  const pem = '-----BEGIN PRIVATE KEY-----\nMIIplanted\nplanted==\n-----END PRIVATE KEY-----'
  for (const line of [logged(pem), logged('got', { pem }), logged('got', { error: new Error(pem) })])
    assert.not.match(line, /planted/)
})

log('describes values that are not JSON, and values without an end', () => {
  const endless: Record<string, unknown> = { big: 5n, at: new Date(0), none: undefined }
  endless['self'] = endless
  assert.match(logged('got', endless), '"big":"5","at":"1970-01-01T00:00:00.000Z"')
})

log.run()

const json = suite('a log line as JSON')

json('is one object with time, level, text and fields', () => {
  const written: string[] = []
  const asJson = openLogger((line) => void written.push(line), { format: 'json' })
  asJson.warn('100 % of "it"\nfailed %s', { request_id: 'r', error: 'got Bearer "a\\"b' })
  const { time, ...line } = JSON.parse(written[0] ?? '') as Record<string, unknown>
  assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  assert.equal(line, {
    level: 'warn',
    msg: '100 % of "it"\nfailed %s',
    request_id: 'r',
    error: 'got Bearer "a\\"b',
  })
  assert.is(written[0]?.split('\n').length, 2)
})

json('is valid although a secret in it is masked', () => {
  const written: string[] = []
  const asJson = openLogger((line) => void written.push(line), { format: 'json' })
  asJson.info('Bearer abc\\', { error: 'Bearer a\\"b", "x": "Cookie: a\\\\' })
  assert.match((JSON.parse(written[0] ?? '') as { msg: string }).msg, 'Bearer ***')
  assert.not.match(written[0] ?? '', /abc/)
})

json.run()

const levels = suite('the level of the log')

levels(
  'leaves out less important lines; `debug` is absent above it, so that callers need not prepare it',
  () => {
    const written: string[] = []
    const write = (line: string) => void written.push(line)
    const warnings = openLogger(write, { level: 'warn' })
    warnings.info('no')
    warnings.warn('yes')
    assert.is(warnings.debug, undefined)
    openLogger(write, { level: 'debug' }).debug?.('yes too')
    assert.equal(
      written.map((line) => line.split(' ').slice(1).join(' ')),
      ['warn yes\n', 'debug yes too\n'],
    )
  },
)

levels.run()
