import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import Koa from 'koa'
import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { sendJson } from '../../src/api/http/jsonReply.ts'
import { openJson } from '../../src/content/jsonContent.ts'
import { isAppError } from '../../src/errors.ts'
import { StoredJson } from '../../src/events/rawJson.ts'
import { openFilesIn } from '../support/openFiles.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const dir = tempDir()
const blobs = await openBlobs({ dir })
await blobs.put('a', Buffer.from('"first"'))
const first = new StoredJson({ key: 'a', size: 7 })
const missing = new StoredJson({ key: 'gone', size: 7 })

const content = suite('JSON with parts in the blobs')

content('contains each part at its place, also one that occurs twice', async () => {
  const { size, chunks } = await openJson(blobs, { x: first, y: 1, z: first })
  const bytes = await buffer(chunks)
  assert.is(bytes.toString(), '{"x":"first","y":1,"z":"first"}')
  assert.is(size, bytes.length)
  await until(() => openFilesIn(dir).length === 0)
})

content('leaves no file open when a part is missing', async () => {
  const refusal = await openJson(blobs, [first, first, missing]).catch((error: unknown) => error)
  assert.ok(isAppError(refusal, 'not_found'))
  await until(() => openFilesIn(dir).length === 0)
})

content('leaves no file open when the client has left before the reply', async () => {
  const app = new Koa()
  const arrived = Promise.withResolvers<IncomingMessage>()
  const replied = Promise.withResolvers<void>()
  app.use(async (ctx) => {
    arrived.resolve(ctx.req)
    await once(ctx.res, 'close')
    await sendJson(ctx, { x: first }, { openJson: (value) => openJson(blobs, value) })
    replied.resolve()
  })
  const callback = app.callback()
  const server = createServer(
    (request: IncomingMessage, response: ServerResponse) => void callback(request, response),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const request = get({ port: (server.address() as AddressInfo).port }).on('error', () => {})
  await arrived.promise
  request.destroy()
  await replied.promise
  await until(() => openFilesIn(dir).length === 0)
  server.close()
})

content.after(() => blobs.close())
content.run()
