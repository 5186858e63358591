import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as assert from 'uvu/assert'
import { incoming, pace } from '../../src/api/http/incoming.ts'
import { isAppError } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** Sends what `send` does to a server that reads it by `incoming`; how the reading ended. */
const read = async (
  send: (sent: ReturnType<typeof request>) => void,
  {
    silenceMs = 60_000,
    onChunk = async () => {},
  }: { silenceMs?: number; onChunk?: () => Promise<void> } = {},
): Promise<{ bytes: number; error: unknown; status: number | undefined }> => {
  const result = { bytes: 0, error: undefined as unknown, status: undefined as number | undefined }
  let over = false
  const server = createServer((incomingRequest, response) => {
    void (async () => {
      try {
        for await (const chunk of incoming(incomingRequest, { silenceMs })) {
          result.bytes += chunk.length
          await onChunk()
        }
      } catch (error) {
        result.error = error
      }
      response.statusCode = result.error ? 408 : 200
      response.setHeader('Connection', 'close')
      response.end()
      over = true
    })()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sent = request({ port: (server.address() as AddressInfo).port, method: 'PUT' })
  sent.on('response', (response) => {
    response.resume()
    result.status = response.statusCode
  })
  sent.on('error', () => {})
  send(sent)
  await until(() => over)
  if (!sent.destroyed) await until(() => result.status)
  sent.destroy()
  server.closeAllConnections()
  server.close()
  return result
}

const body = suite('a body that streams in')

body('arrives complete', async () => {
  const { bytes, error } = await read((sent) => sent.end(Buffer.alloc(1 << 20)))
  assert.equal([bytes, error], [1 << 20, undefined])
})

body('that stops arriving is refused with a 408', async () => {
  const { error, status } = await read((sent) => sent.write('half'), { silenceMs: 50 })
  assert.ok(isAppError(error, 'request_timeout'), String(error))
  assert.is(status, 408)
})

body('that arrives at less than 16 KB a second is refused', async () => {
  let trickle: NodeJS.Timeout | undefined
  const { error } = await read((sent) => (trickle = setInterval(() => sent.write('x'), 10)), {
    silenceMs: 100,
  })
  clearInterval(trickle)
  assert.ok(isAppError(error, 'request_timeout'), String(error))
})

body('is not refused because its reader is slow', async () => {
  const silenceMs = 3000 // a machine that stalls is no silent client
  let chunks = 0
  const onChunk = async () => {
    if (chunks++ === 0) await new Promise<void>((resolve) => setTimeout(resolve, silenceMs + 500))
  }
  const { bytes, error } = await read((sent) => sent.end(Buffer.alloc(200_000)), { silenceMs, onChunk })
  assert.ok(chunks > 1)
  assert.equal([bytes, error], [200_000, undefined])
})

body('that is interrupted is the sender’s error', async () => {
  const { error } = await read((sent) => sent.write('half', () => sent.destroy()))
  assert.ok(isAppError(error, 'bad_request'), String(error))
})

body.run()

/** Reads a body as a library does, while its pace is watched. Returns how that ended. */
const paced = async (
  send: (sent: ReturnType<typeof request>) => void,
  silenceMs: number,
): Promise<unknown> => {
  let ending: unknown
  const server = createServer((received, response) => {
    const { tooSlow, stop } = pace(received, { silenceMs })
    received.resume()
    void Promise.race([once(received, 'end').then(() => 'read'), tooSlow])
      .catch((error: unknown) => error)
      .then((result) => {
        ending = result
        stop()
        response.end()
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sent = request({ port: (server.address() as AddressInfo).port, method: 'POST' })
  sent.on('response', (response) => response.resume()).on('error', () => {})
  send(sent)
  await until(() => ending)
  sent.destroy()
  server.closeAllConnections()
  server.close()
  return ending
}

const form = suite('the body of a form')

form('that trickles is refused with a 408', async () => {
  let trickle: NodeJS.Timeout | undefined
  const ending = await paced((sent) => (trickle = setInterval(() => sent.write('x'), 5)), 50)
  clearInterval(trickle)
  assert.ok(isAppError(ending, 'request_timeout'))
})

form('that arrives at once is read', async () => {
  assert.is(await paced((sent) => sent.end(Buffer.alloc(1 << 20)), 10_000), 'read')
})

form.run()
