import { once } from 'node:events'
import { createServer } from 'node:http'
import * as assert from 'uvu/assert'
import { createFront } from '../../src/api/app.ts'
import { AppError } from '../../src/errors.ts'
import { openLogger, silent } from '../../src/logger.ts'
import { NO_PROXIES } from '../../src/ports/trustedProxies.ts'
import { RequestMeter } from '../../src/api/http/requestMeter.ts'
import { Operator } from '../../src/api/http/operator.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { openOperatorSessions } from '../support/operatorSessions.ts'
import { suite } from '../support/suite.ts'

const TOKEN = 'the-token-of-the-operator-of-this-test'
const operatorOf = () =>
  new Operator({
    tokens: [TOKEN],
    sessions: openOperatorSessions(),
    keyring: new Keyring(new Uint8Array(32)),
    logger: silent,
  })

const front = suite('the health checks of a node whose API has not started')

/** Sends requests to such a node and returns the statuses and the log. */
const replies = async (
  notReady: () => string | null,
  operator: Operator | null,
  ...requests: readonly [method: string, path: string, token?: string][]
) => {
  const printed: string[] = []
  const logger = openLogger((line) => void printed.push(line))
  const about = { version: '1', git_sha: 'a', start_time: '2026-05-01T10:00:00.000Z' }
  const app = createFront(
    {
      logger,
      about,
      notReady,
      sandbox: null,
      trustedProxies: NO_PROXIES,
      corsOrigins: null,
      requests: new RequestMeter(),
      metrics: () => Promise.resolve({ contentType: 'text/plain', text: () => Promise.resolve('m 1\n') }),
      operator: () => operator,
    },
    () => new AppError('unavailable', 'is starting'),
  )
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const statuses: number[] = []
  for (const [method, path, token = ''] of requests) {
    const headers = { Authorization: `Bearer ${token}` }
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers })
    await reply.text()
    statuses.push(reply.status)
  }
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  return { statuses, printed }
}

front('are served, and every other request gets the reason', async () => {
  const { statuses } = await replies(
    () => 'an engine is missing',
    null,
    ['GET', '/healthz'],
    ['GET', '/status'],
    ['GET', '/readyz'],
    ['GET', '/v1/runs'],
    ['POST', '/healthz'],
  )
  assert.equal(statuses, [200, 200, 503, 503, 405])
})

front('come with the metrics, for the operator, when the keys are open', async () => {
  const metrics = ['GET', '/metrics', TOKEN] as const
  assert.equal((await replies(() => 'an engine is missing', null, [...metrics])).statuses, [503])
  const { statuses } = await replies(
    () => null,
    operatorOf(),
    [...metrics],
    ['GET', '/metrics', 'x'],
    ['GET', '/metrics'],
  )
  assert.equal(statuses, [200, 401, 401])
})

front('log a failure with its route', async () => {
  const failing = () => {
    throw new Error('out of order')
  }
  const { statuses, printed } = await replies(failing, null, ['GET', '/readyz'])
  assert.equal(statuses, [500])
  assert.is(printed.length, 1)
  assert.match(printed[0] ?? '', '"route":"/readyz"')
})

front.run()
