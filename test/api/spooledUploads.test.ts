import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { type ClientRequest, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { upload } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { openFilesIn } from '../support/openFiles.ts'
import { plantedFile } from '../support/plantedFile.ts'
import { plantOrg } from '../support/plantOrg.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'

const MB = 1 << 20
/** Room that is left in an organization that is nearly full. */
const LEFT = 12 * MB
const { starter, self_host } = termsOf

const nearlyFull = plantedFile('planted', starter.limits.storage_bytes - LEFT)

const dataDir = tempDir()
const [full] = await plantOrg(dataDir, 'starter', [nearlyFull])
const [limited] = await plantOrg(dataDir, 'starter', [])
const server = await spawnServer({ dataDir })
const { api, url } = server
const apiOf = (planted: { key: string } | undefined): Api => openApi(url, planted?.key ?? '')

const dir = join(dataDir, 'uploads')
const spooled = (): string[] => readdirSync(dir)
const spooledBytes = (): number => spooled().reduce((sum, name) => sum + statSync(join(dir, name)).size, 0)
const openFiles = (): string[] => openFilesIn(dir, server.process.pid)

const begin = async (as: Api): Promise<string> =>
  (await as.post<{ upload_id: string }>('/files/uploads', { path: `f-${newId()}` })).upload_id

/** Parts that are being sent. */
const open = new Set<ClientRequest>()

interface Sending {
  readonly answer: Promise<{ status: number; retryAfter: string | undefined; text: string }>
  /** Ends the body. */
  end(): void
}

/** Begins to send a part without `Content-Length`. Until it is ended, it goes on at a rate that the service accepts. */
const sendPart = (as: Api, upload_id: string, part_number: number, content: Buffer): Sending => {
  const sent = request(`${url}/v1/files/uploads/${upload_id}/${part_number}`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${as.key}`, 'Transfer-Encoding': 'chunked' },
  })
  open.add(sent)
  sent.on('close', () => {
    open.delete(sent)
    clearInterval(going)
  })
  const going = setInterval(() => sent.write(Buffer.alloc(64 << 10)), 1000)
  const answer = new Promise<Awaited<Sending['answer']>>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      const { statusCode: status = 0, headers } = response
      text(response).then(
        (body) => resolve({ status, retryAfter: headers['retry-after'], text: body }),
        reject,
      )
    })
  })
  answer.catch(() => {}) // awaited by the test
  sent.write(content)
  return {
    answer,
    end: () => {
      clearInterval(going)
      sent.end()
    },
  }
}

const putPart = (as: Api, upload_id: string, part_number: number, content: Buffer): Sending['answer'] => {
  const { answer, end } = sendPart(as, upload_id, part_number, content)
  end()
  return answer
}

const parts = suite('a part without Content-Length')

parts('of an upload that is complete is refused, and leaves no file open', async () => {
  const upload_id = await begin(api)
  assert.is((await putPart(api, upload_id, 1, Buffer.from('x'))).status, 200)
  await api.post(`/files/uploads/${upload_id}/complete`)
  for (let i = 0; i < 20; i++) assert.is((await putPart(api, upload_id, 1, Buffer.from('x'))).status, 404)
  assert.equal([openFiles(), spooled()], [[], []])
})

parts('whose upload is cancelled while it arrives leaves no file open', async () => {
  for (let i = 0; i < 5; i++) {
    const upload_id = await begin(api)
    const { answer, end } = sendPart(api, upload_id, 1, Buffer.from('x'))
    await until(() => spooledBytes() > 0)
    await api.remove(`/files/uploads/${upload_id}`)
    end()
    assert.is((await answer).status, 404)
  }
  assert.equal([openFiles(), spooled()], [[], []])
})

parts('counts as storage of the plan while it arrives', async () => {
  const as = apiOf(full)
  const [first, second] = [await begin(as), await begin(as)]
  const held = sendPart(as, first, 1, Buffer.alloc(7 * MB))
  await until(() => spooledBytes() >= 7 * MB)
  const refused = await putPart(as, second, 1, Buffer.alloc(6 * MB))
  assert.is(refused.status, 403, refused.text)
  assert.match(refused.text, '"quota_exceeded"')
  held.end()
  assert.is((await held.answer).status, 200)
  await as.remove(`/files/uploads/${first}`)
  assert.is((await putPart(as, second, 1, Buffer.alloc(6 * MB))).status, 200)
})

parts('is refused with 429 while as many arrive as the plan allows on a node', async () => {
  const as = apiOf(limited)
  const upload_id = await begin(as)
  const most = starter.counts.spooledParts
  const held = Array.from({ length: most }, (_, i) => sendPart(as, upload_id, i + 1, Buffer.from('x')))
  await until(() => spooled().length === most)
  const refused = await putPart(as, upload_id, most + 1, Buffer.from('x'))
  assert.equal([refused.status, refused.retryAfter], [429, '5'], refused.text)
  assert.match(refused.text, 'without Content-Length')
  const announced = await as.send('PUT', `/files/uploads/${upload_id}/${most + 1}`, { body: 'x' })
  assert.is(announced.status, 200)
  for (const { end } of held) end()
  for (const { answer } of held) assert.is((await answer).status, 200)
  assert.is((await putPart(as, upload_id, most + 1, Buffer.from('x'))).status, 200)
})

parts.after(() => open.forEach((sent) => sent.destroy()))
parts.run()

const builds = suite('an upload of a build')

builds('that finds no room on the disk does not count as in progress afterwards', async () => {
  await api.post('/projects', { name: 'shop' })
  const zip = await zipBuild({ 'main.js': 'export const f = () => 1' })
  rmSync(dir, { recursive: true }) // as on a full disk, nothing can be created there
  for (let i = 0; i < self_host.counts.buildUploads; i++)
    assert.is((await upload(api, 'shop', zip)).status, 500)
  mkdirSync(dir)
  const { status, text: reply } = await upload(api, 'shop', zip)
  assert.is(status, 201, reply)
})

builds.after(() => server.stop())
builds.run()
