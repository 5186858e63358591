import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { deploy, publish, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

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

/** Begins a webhook with the first bytes of its body. Resolves when the service has asked for them. */
const begun = async (bytes: number): Promise<Socket> => {
  const { hostname, port, pathname } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) }).on('error', () => {})
  const head = [
    `POST ${pathname} HTTP/1.1`,
    'Host: svc',
    'Expect: 100-continue',
    'Transfer-Encoding: chunked',
    '',
    '',
  ]
  socket.write(head.join('\r\n'))
  await once(socket, 'data')
  socket.write(`${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`)
  return socket
}

/** Does some work while senders of webhooks have sent their first bytes, and send no more. */
const beside = async (bytes: number, work: () => Promise<void>): Promise<void> => {
  const sockets = await Promise.all(Array.from({ length: SENDERS }, () => begun(bytes)))
  try {
    await work()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

const sent = async (body: string): Promise<number> => {
  const stream = new Blob([body]).stream() // in the chunked encoding
  const init: RequestInit = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: stream }
  return (await fetch(url, { ...init, duplex: 'half' })).status
}

const silent = suite('senders of webhooks that send no more', { timeoutMs: 120_000 })

silent('after a byte keep neither other webhooks nor requests waiting for memory', () =>
  beside(1, async () => {
    assert.is(await sent('x'.repeat(1000)), 200)
    assert.is(await sent('x'.repeat(100_000)), 200)
    await publish(api, 'large', 'x'.repeat(100_000))
  }),
)

silent('after 40 KiB keep neither requests nor small webhooks waiting for memory', () =>
  beside(40 << 10, async () => {
    assert.is(await sent('x'.repeat(1000)), 200)
    await publish(api, 'large', 'x'.repeat(100_000))
  }),
)

silent.after(() => server.stop())
silent.run()
