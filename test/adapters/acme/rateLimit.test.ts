import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import * as assert from 'uvu/assert'
import { openAcme } from '../../../src/adapters/acme/certificates.ts'
import { type AppError, isAppError } from '../../../src/errors.ts'
import { silent } from '../../../src/logger.ts'
import { createAuthority } from '../../support/certificates.ts'
import { suite } from '../../support/suite.ts'

const LIMITED = {
  type: 'urn:ietf:params:acme:error:rateLimited',
  detail: 'too many new orders recently',
}

/** An authority whose limit of orders is reached. `retryAfter`: its header with that name. */
const openLimited = async (retryAfter: string | null) => {
  const authority = createAuthority()
  const server: Server = createServer(authority.issue('IP:127.0.0.1'), (request, reply) => {
    const { port } = server.address() as AddressInfo
    const at = (path: string) => `https://127.0.0.1:${port}${path}`
    reply.setHeader('Replay-Nonce', 'nonce')
    if (request.url === '/dir')
      return reply.end(
        JSON.stringify({
          newNonce: at('/nonce'),
          newAccount: at('/account'),
          newOrder: at('/order'),
          revokeCert: at('/revoke'),
        }),
      )
    if (request.url === '/account')
      return reply.writeHead(201, { Location: at('/account/1') }).end('{"status":"valid"}')
    if (request.url === '/order') {
      if (retryAfter !== null) reply.setHeader('Retry-After', retryAfter)
      return reply.writeHead(429, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify(LIMITED))
    }
    return reply.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const certificates = openAcme({
    directoryUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`,
    email: null,
    ca: readFileSync(authority.file, 'utf8'),
    rootKey: Buffer.alloc(32, 1),
    logger: silent,
  })
  return {
    refusal: async (): Promise<AppError> => {
      const error: unknown = await certificates
        .issue('a.example', () => Promise.resolve())
        .catch((e: unknown) => e)
      if (isAppError(error)) return error
      throw error
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const limited = suite('the rate limit of a certificate authority')

limited('is reported with the seconds that the authority asks for', async () => {
  const place = await openLimited('7200')
  const { message, data } = await place.refusal()
  assert.is(
    message,
    'The certificate authority refused the certificate (too many new orders recently): its rate limit is reached; the order is repeated later',
  )
  assert.is(data['retryAfter'], 7200)
  place.stop()
})

limited('may name a date', async () => {
  const place = await openLimited(new Date(Date.now() + 3600_000).toUTCString())
  const { data } = await place.refusal()
  assert.ok(Math.abs(Number(data['retryAfter']) - 3600) < 120, String(data['retryAfter']))
  place.stop()
})

limited('may name nothing, or nonsense', async () => {
  for (const header of [null, 'soon', '-5', '1e99']) {
    const place = await openLimited(header)
    assert.is((await place.refusal()).data['retryAfter'], undefined, String(header))
    place.stop()
  }
})
limited.run()
