import * as assert from 'uvu/assert'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { mismatches, replySchema } from '../openapi/liveReply.ts'
import { type Embedded, put, spawnEmbedded } from '../support/backedUp.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Begun {
  readonly backup_id: string
  readonly position: number
}

const routes = suite<{ server: Embedded }>('the routes of backups', { timeoutMs: 60_000 })
routes.before(async (context) => {
  context.server = await spawnEmbedded()
  await put(context.server, 'a.txt', 'content')
})
routes.after(({ server }) => server.stop())

const at = ({ url }: Embedded, path = '') => `${url}/operator/backups${path}`
const send = async (server: Embedded, method: string, path = '') =>
  server.operator.send(method, at(server, path))
const begin = async (server: Embedded): Promise<Begun> => server.operator.post<Begun>(at(server))

routes('reply as documented, from the beginning to the end', async ({ server }) => {
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApiDocument
  const { status, json } = await send(server, 'POST')
  assert.is(status, 201)
  assert.equal(mismatches(replySchema(document, 'beginBackup', 201), json), [])
  const { backup_id, position } = (json as { data: Begun }).data
  assert.match((await send(server, 'GET', `/${backup_id}/log`)).text, /^1 \d+ \d+\n\[/)
  assert.is((await send(server, 'GET', `/${backup_id}/log?after=${position}`)).text, '')
  const listed = (await send(server, 'GET', `/${backup_id}/blobs`)).text.split('\n')
  const [key, size] = JSON.parse(listed.find((line) => line.includes('files/')) ?? '[]') as [string, number]
  assert.is(size, 'content'.length)
  assert.is((await send(server, 'GET', `/${backup_id}/blobs/${key}`)).text, 'content')
  assert.is((await send(server, 'GET', `/${backup_id}/blobs/${key}?from=3`)).text, 'tent')
  assert.is((await send(server, 'POST', `/${backup_id}/complete`)).status, 204)
  assert.is((await send(server, 'POST', `/${backup_id}/complete`)).status, 404)
  assert.is((await send(server, 'DELETE', `/${backup_id}`)).status, 204)
})

routes('leave a line in the log with the request and the address, as an export does', async ({ server }) => {
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  const exported = await server.operator.send('POST', `${server.url}/operator/envs/${env_id}/export`, {
    body: { transfer_key: Buffer.alloc(32, 1).toString('base64') },
  })
  const backup = await send(server, 'POST')
  assert.equal([exported.status, backup.status], [200, 201])
  for (const [{ headers }, text] of [
    [exported, 'An environment is exported'],
    [backup, 'A backup began'],
  ] as const) {
    const request = headers.get('x-request-id') ?? ''
    const line = await until(() =>
      server.output
        .join('')
        .split('\n')
        .find((each) => each.includes(request)),
    )
    assert.match(line, text)
    assert.match(line, '"ip":"127.0.0.1"')
  }
})

routes('require the operator token', async ({ server }) => {
  const { backup_id } = await begin(server)
  for (const [method, path] of [
    ['POST', ''],
    ['GET', `/${backup_id}/log`],
    ['GET', `/${backup_id}/blobs`],
    ['GET', `/${backup_id}/blobs/log-id`],
    ['POST', `/${backup_id}/complete`],
    ['DELETE', `/${backup_id}`],
  ] as const) {
    assert.is((await fetch(at(server, path), { method })).status, 401)
    assert.is((await server.api.send(method, at(server, path))).status, 401)
  }
  assert.is((await send(server, 'DELETE', `/${backup_id}`)).status, 204)
})

routes('refuse unknown backups, unknown blobs and keys that lead elsewhere', async ({ server }) => {
  const { backup_id } = await begin(server)
  for (const path of ['/log', '/blobs', '/blobs/log-id', '/complete'])
    assert.is((await send(server, path === '/complete' ? 'POST' : 'GET', `/${newId()}${path}`)).status, 404)
  assert.is((await send(server, 'GET', `/${backup_id}/blobs/files/none`)).status, 404)
  for (const key of ['..%2f..%2fsecrets.json', 'a//b', '.', 'objects~', 'a%00b'])
    assert.ok([400, 404].includes((await send(server, 'GET', `/${backup_id}/blobs/${key}`)).status), key)
  for (const query of ['after=-1', 'after=x', 'before=1'])
    assert.is((await send(server, 'GET', `/${backup_id}/log?${query}`)).status, 400)
  await send(server, 'DELETE', `/${backup_id}`)
})
routes.run()
