import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { drained } from '../../src/api/http/linger.ts'
import { clock } from '../../src/clock.ts'
import { suite } from '../support/suite.ts'

/** Longer than the silence after which a client counts as one that has stopped sending. */
const STALL_MS = 2500

/** The kernel takes as much at once. */
const BODY = 'x'.repeat(16 << 10)

const discarding = suite('discarding the body of a request')

discarding('reads what arrived during a stall before it takes the client for silent', async () => {
  const server = createServer((request, response) => {
    void drained(request).then(() => response.end(`read whole: ${request.complete}`))
    client.write(BODY)
    const end = clock.monotonic() + STALL_MS
    while (clock.monotonic() < end);
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write(`POST / HTTP/1.1\r\nHost: svc\r\nConnection: close\r\nContent-Length: ${BODY.length}\r\n\r\n`)
  assert.match(await text(client), 'read whole: true')
  server.close()
})

discarding.run()
