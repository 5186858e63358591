import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { Guesses } from '../../src/api/http/guesses.ts'
import { openLogger, silent } from '../../src/logger.ts'
import { Operator } from '../../src/api/http/operator.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { newApiToken, newSecret } from '../../src/access/tokens.ts'
import { newId } from '../../src/ids.ts'
import { openApi } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { openOperatorSessions } from '../support/operatorSessions.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deploy, type Webhook } from '../support/build.ts'

const server = await startServer()
const { api } = server
const orgs = `${server.url}/operator/orgs`

const opened = (monotonic: () => number, lines: string[] = []) =>
  new Guesses({
    perSecond: 2,
    burst: 3,
    what: 'Guesses',
    logger: openLogger((line) => void lines.push(line)),
    monotonic,
  })

/** Counts wrong guesses until one is refused; at most ten. */
const countedOf = (guesses: Guesses, address: string): number => {
  for (let count = 0; count < 10; count++)
    try {
      guesses.count(address)
    } catch (error) {
      if (isAppError(error, 'rate_limit_exceeded')) return count
      throw error
    }
  return 10
}

const guesses = suite('guesses of one address')

guesses('are limited at once, and allowed again after some time', () => {
  let now = 1000
  const limit = opened(() => now)
  assert.is(countedOf(limit, '203.0.113.7'), 3)
  assert.is(countedOf(limit, '203.0.113.7'), 0)
  now += 500
  assert.is(countedOf(limit, '203.0.113.7'), 1)
  now += 60_000
  assert.is(countedOf(limit, '203.0.113.7'), 3)
})

guesses('do not limit another address', () => {
  const limit = opened(() => 1000)
  assert.is(countedOf(limit, '203.0.113.7'), 3)
  assert.is(countedOf(limit, '203.0.113.8'), 3)
})

guesses('are those of a network of 64 bits with IPv6', () => {
  const limit = opened(() => 1000)
  assert.is(countedOf(limit, '2001:db8:0:1::1'), 3)
  for (const same of ['2001:db8:0:1::2', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8::1:0:0:0:3'])
    assert.is(countedOf(limit, same), 0, same)
  for (const other of ['2001:db8:0:2::1', '2001:db8::1', '::1']) assert.is(countedOf(limit, other), 3, other)
})

guesses('beyond the limit are logged once per minute, with the address', () => {
  let now = 1000
  const lines: string[] = []
  const limit = opened(() => now, lines)
  for (let n = 0; n < 3; n++) countedOf(limit, '203.0.113.7')
  assert.is(lines.length, 1)
  assert.match(lines[0] ?? '', /Guesses: .*"203\.0\.113\.7"/)
  now += 60_000
  countedOf(limit, '203.0.113.7')
  assert.is(lines.length, 2)
})

guesses.run()

/** The statuses of as many requests at once. */
const statusesOf = async (
  count: number,
  send: () => Promise<{ status: number }>,
): Promise<Map<number, number>> => {
  const replies = await Promise.all(Array.from({ length: count }, send))
  return new Map(
    [...Map.groupBy(replies, ({ status }) => status)].map(([status, group]) => [status, group.length]),
  )
}

/**
 * Sends many requests at once until some have each of these statuses; resolves with the statuses of all, sorted. Guesses are
 * allowed again with time, so one burst may get only one of the statuses.
 */
const repliesWith = async (
  wanted: readonly number[],
  send: () => Promise<{ status: number }>,
): Promise<number[]> => {
  const seen = new Set<number>()
  await until(async () => {
    for (const status of (await statusesOf(150, send)).keys()) seen.add(status)
    return wanted.every((status) => seen.has(status))
  })
  return [...seen].toSorted()
}

const limited = suite('requests of one address', { timeoutMs: 60_000 })

limited('with wrong tokens are limited, but not those with a token that the node knows', async () => {
  await deploy(api, 'hooks', {
    'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 's', path: '/a' } }, () => 1)`,
  })
  const [hook] = await api.get<Webhook[]>('/projects/hooks/webhooks')
  const guess = () => openApi(server.url, newApiToken(newId())).send('GET', '/env')
  assert.equal(await repliesWith([401, 429], guess), [401, 429])
  assert.is((await api.send('GET', '/env')).status, 200)
  assert.is((await api.send('POST', hook?.url ?? '')).status, 200)
  await repliesWith([429], () => openApi(server.url, 'none').send('GET', '/env'))
  const unknown = () => api.send('POST', `${hook?.url}x`)
  assert.equal(await repliesWith([404, 429], unknown), [404, 429])
})

limited('with wrong operator tokens are limited and logged without the token', async () => {
  const guess = 'a-wrong-operator-token-of-32-characters'
  const statuses = await statusesOf(100, () => openApi(server.url, guess).send('GET', orgs))
  assert.equal([...statuses.keys()].toSorted(), [401, 429])
  const lines = server.output.filter((line) => line.includes('A wrong operator token was refused'))
  assert.is(lines.length, statuses.get(401))
  assert.match(lines[0] ?? '', /"ip":"127\.0\.0\.1","request_id":"/)
  assert.not.match(server.output.join(''), guess)
})

limited(
  'with the operator token are refused too after too many wrong ones, and admitted from elsewhere',
  () => {
    const token = newSecret('svc_operator_')
    const operator = new Operator({
      tokens: [token],
      sessions: openOperatorSessions(),
      keyring: new Keyring(Buffer.alloc(32)),
      logger: silent,
    })
    const codeOf = (sent: string, ip: string): string => {
      try {
        operator.admit(`Bearer ${sent}`, { ip, request_id: newId() })
        return 'admitted'
      } catch (error) {
        return isAppError(error) ? error.code : 'broken'
      }
    }
    assert.is(codeOf(token, '203.0.113.7'), 'admitted')
    for (let n = 0; n < 100; n++) codeOf('wrong', '203.0.113.7')
    assert.is(codeOf(token, '203.0.113.7'), 'rate_limit_exceeded')
    assert.is(codeOf(token, '203.0.113.8'), 'admitted')
  },
)

limited.after(() => server.stop())
limited.run()
