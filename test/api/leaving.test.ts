import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import * as assert from 'uvu/assert'
import { leaving } from '../../src/api/http/leaving.ts'
import { suite } from '../support/suite.ts'

const signal = suite('the signal that a client has left')

signal('is aborted also for a handler that begins after the client has left', async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer((_, res) => {
    client.destroy()
    res.once('close', () => setImmediate(() => resolve(leaving({ res }).aborted)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  try {
    assert.is(await promise, true)
  } finally {
    server.close()
  }
})
signal.run()
