import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import * as assert from 'uvu/assert'
import { answerCall } from '../../../src/api/mcp/callRequest.ts'
import type { Ask } from '../../../src/api/route.ts'
import type { Reservation } from '../../../src/content/fileQuota.ts'
import { isAppError } from '../../../src/errors.ts'
import { OpenCounts } from '../../../src/plans/openCounts.ts'
import { openCommands } from '../../commands/openCommands.ts'
import { plantBuild, plantEnv } from '../../commands/plantEnv.ts'
import { suite } from '../../support/suite.ts'

const node = await openCommands()
const env = await plantEnv(node, 'acme', 'free')
const mcp = { service: 'shop', description: 'Refunds' }
await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'shop', var: 'refund', mcp }] })

/** Reservations of the plan, and the bytes that they still have. */
const reservations = () => {
  let held = 0
  const dataFor = (env_id: string): Reservation => {
    const room = node.quotas.dataFor(env_id)
    let own = 0
    return {
      cover: async (bytes) => {
        await room.cover(bytes)
        held += bytes - own
        own = bytes
      },
      release: () => {
        room.release()
        held -= own
        own = 0
      },
    }
  }
  return { dataFor, held: () => held }
}

/** Asks as a client that leaves when `leave` is called. Resolves when the reply has closed. */
const asking = async (answer: (res: ServerResponse, leave: () => Promise<unknown>) => Promise<unknown>) => {
  const { promise, resolve } = Promise.withResolvers<Promise<unknown>>()
  const server = createServer((_, res) => {
    const leave = async () => {
      const closed = once(res, 'close')
      client.destroy()
      await closed
    }
    resolve(answer(res, leave))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  try {
    return await promise
  } finally {
    server.close()
  }
}

const calls = suite('a call of a tool whose client has left')

calls('gives its room of the plan back, also if its arguments were stored meanwhile', async () => {
  const rooms = reservations()
  const answering = asking((res, leave) => {
    const payloads = {
      keep: async (...input: Parameters<typeof node.payloads.keep>) => {
        await leave()
        const kept = await node.payloads.keep(...input)
        assert.ok(rooms.held() > 0)
        return kept
      },
    }
    const ask = {
      ctx: { res, get: () => 'text/event-stream' },
      deps: {
        ...node.deps,
        payloads,
        quotas: { checkRun: () => Promise.resolve(), dataFor: rooms.dataFor },
        openCounts: new OpenCounts(node.views.directory),
        webhookTimeoutMs: 1000,
      },
      credential: { id: 'key', env_id: env.env_id, permissions: { allows: () => true }, granted: [] },
      caller: env.caller,
      request_id: 'request',
    } as unknown as Ask
    const params = {
      name: 'shop_shop_refund',
      arguments: { order: 'x'.repeat(100_000) },
      _meta: { progressToken: 1 },
    }
    return answerCall(ask, { kind: 'request', id: 1, method: 'tools/call', params }, undefined)
  })
  const refusal: unknown = await answering.catch((error: unknown) => error)
  assert.ok(isAppError(refusal, 'unavailable'), String(refusal))
  assert.is(rooms.held(), 0)
})

calls.after(() => node.close())
calls.run()
