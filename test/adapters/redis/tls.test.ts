import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import * as assert from 'uvu/assert'
import { parseAddress } from '../../../src/adapters/redis/address.ts'
import { Connection } from '../../../src/adapters/redis/connection.ts'
import { probeRedis } from '../../../src/adapters/redis/probe.ts'
import { messageOf } from '../../../src/errors.ts'
import { createAuthority } from '../../support/certificates.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const authority = createAuthority()
const trusted = getCACertificates('default')

const tls = suite('Redis adapter: TLS')
tls.before(() => setDefaultCACertificates([...trusted, readFileSync(authority.file, 'utf8')]))
tls.after(() => setDefaultCACertificates(trusted))

/** Calls back with the port of a server that replies to commands as Redis does before its first data. */
const secured = async <T>(
  address: string,
  issuedTo: string,
  work: (port: number) => Promise<T>,
): Promise<T> => {
  const server = createServer(authority.issue(issuedTo), (socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const [, command] of String(data).matchAll(/^\*\d+\r\n\$\d+\r\n(\w+)/gm))
        socket.write(/time/i.test(command ?? '') ? '*2\r\n$1\r\n7\r\n$1\r\n0\r\n' : '$0\r\n\r\n')
    })
  })
  server.on('tlsClientError', () => {})
  server.listen(0, address)
  await once(server, 'listening')
  try {
    return await work((server.address() as AddressInfo).port)
  } finally {
    server.close()
  }
}

for (const [host, address, other] of [
  ['localhost', '127.0.0.1', 'DNS:example.com'],
  ['127.0.0.1', '127.0.0.1', 'IP:127.0.0.2'],
  ['[::1]', '::1', 'IP:::2'],
] as const) {
  const own = host === 'localhost' ? 'DNS:localhost' : `IP:${address}`

  tls(`connects to ${host} with a certificate for it`, () =>
    secured(address, own, async (port) => {
      const { clock } = await probeRedis(`rediss://${host}:${port}`)
      assert.is(clock?.time, 7000)
    }),
  )

  tls(`refuses at ${host} the certificate of another server`, () =>
    secured(address, other, async (port) => {
      const failure = await probeRedis(`rediss://${host}:${port}`).then(() => 'connected', messageOf)
      assert.match(failure, "does not match certificate's altnames")
    }),
  )
}

tls('reports a connection as lost that cannot even be attempted', async () => {
  const reasons: string[] = []
  const address = { ...parseAddress('redis://127.0.0.1'), port: 70_000 } // Node.js refuses it before any attempt
  const connection = new Connection(address, { onReady() {}, onLost: (reason) => void reasons.push(reason) })
  await connection.open(address.place)
  await until(() => reasons.length > 0)
  connection.close()
  assert.match(reasons[0] ?? '', '70000')
})

tls.run()
