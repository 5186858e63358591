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
  ['an engine', 'mongodb://user:hunter2@db:27017/svc'],
] as const)
  log(`contains no secret of ${what}`, () => {
    const tail = /(?:[_/]|Bearer |token |:)([^_/: @]+)(?:@.*)?$/.exec(secret)?.[1] ?? secret
    for (const line of [logged(`got ${secret}`), logged('got', { error: secret, stack: `at\n${secret}` })]) {
      assert.not.match(line, tail)
      assert.match(line, '***')
    }
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
  ['marks that change the direction', 'a\u202eb\u2066c'],
] as const)
  log(`is one line without ${what}`, () => {
    for (const line of [logged(text), logged('x', { text })]) {
      assert.ok(line.endsWith('\n'))
      assert.not.match(line.slice(0, -1), /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u)
    }
  })

log.run()
