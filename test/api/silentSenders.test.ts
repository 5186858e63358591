import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { deploy, publish, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { newSession } from './issuing.ts'

const HOOK = `
import { fn } from 'svc'
export const hook = fn({ webhook: { service: 's', path: '/hook' } }, ({ body }) => JSON.stringify(body).length)
`

const server = await startServer()
const { api } = server
await deploy(api, 'hooks', { 'h.js': HOOK })
const url = (await api.page<Webhook>('/projects/hooks/webhooks')).data[0]?.url ?? ''

/** More than the memory for the bodies of webhooks admits at a time. */
const SENDERS = 80

/** Begins a request with the first bytes of its body. Resolves when the service has asked for them. */
const begun = async (to: string, headers: readonly string[], first: string): Promise<Socket> => {
  const { hostname, port, pathname } = new URL(to)
  const socket = connect({ host: hostname, port: Number(port) }).on('error', () => {})
  const head = [`POST ${pathname} HTTP/1.1`, 'Host: svc', 'Expect: 100-continue', ...headers, '', '']
  socket.write(head.join('\r\n'))
  await once(socket, 'data')
  socket.write(first)
  return socket
}

/** Does some work while the senders of many requests have sent their first bytes, and send no more. */
const besides = async (sender: () => Promise<Socket>, work: () => Promise<void>): Promise<void> => {
  const sockets = await Promise.all(Array.from({ length: SENDERS }, sender))
  try {
    await work()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** The same for webhooks with so many bytes of their bodies. */
const beside = (bytes: number, work: () => Promise<void>): Promise<void> => {
  const first = `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`
  return besides(() => begun(url, ['Transfer-Encoding: chunked'], first), work)
}

const sent = async (body: string): Promise<number> => {
  const stream = new Blob([body]).stream() // in the chunked encoding
  const init: RequestInit = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: stream }
  return (await fetch(url, { ...init, duplex: 'half' })).status
}

const silent = suite('senders that send no more', { timeoutMs: 120_000 })

silent('after a byte of a webhook keep neither other webhooks nor requests waiting for memory', () =>
  beside(1, async () => {
    assert.is(await sent('x'.repeat(1000)), 200)
    assert.is(await sent('x'.repeat(100_000)), 200)
    await publish(api, 'large', 'x'.repeat(100_000))
  }),
)

silent('after 40 KiB of webhooks keep neither requests nor small webhooks waiting for memory', () =>
  beside(40 << 10, async () => {
    assert.is(await sent('x'.repeat(1000)), 200)
    await publish(api, 'large', 'x'.repeat(100_000))
  }),
)

silent(
  'after a byte of requests for which they lack the permission keep no other request waiting',
  async () => {
    const { token } = await newSession(api, { 'stream:none': ['read'] })
    const headers = [`Authorization: Bearer ${token}`, `Content-Length: ${1 << 20}`]
    await besides(
      () => begun(`${api.url}/v1/events`, headers, '{'),
      async () => void (await publish(api, 'large', 'x'.repeat(100_000))),
    )
  },
)

silent('that leave while they wait for memory take none', async () => {
  const headers = [`Authorization: Bearer ${api.key}`, `Content-Length: ${1 << 20}`]
  await besides(
    () => begun(`${api.url}/v1/events`, headers, '{'.padEnd(80 << 10)),
    async () => void (await api.send('GET', '/env')),
  )
  await publish(api, 'large', 'x'.repeat(100_000))
})

silent('within their headers get a 408 and the time of the next attempt', async () => {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.write('GET /v1/env HTTP/1.1\r\nHost: svc\r\nX-')
  const reply = (await buffer(socket)).toString()
  assert.match(reply, /^HTTP\/1\.1 408 /)
  assert.match(reply, '\r\nRetry-After: 1\r\n')
  assert.match(reply, '"request_timeout"')
})

silent.after(() => server.stop())
silent.run()
