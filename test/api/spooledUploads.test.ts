import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { type ClientRequest, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { upload } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { openFilesIn } from '../support/openFiles.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'

const dataDir = tempDir()
const server = await spawnServer({ dataDir })
const { api, url } = server

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

parts.after(() => open.forEach((sent) => sent.destroy()))
parts.run()

const builds = suite('an upload of a build')

builds('that finds no room on the disk does not count as in progress afterwards', async () => {
  await api.post('/projects', { name: 'shop' })
  const zip = await zipBuild({ 'main.js': 'export const f = () => 1' })
  rmSync(dir, { recursive: true }) // as on a full disk, nothing can be created there
  for (let i = 0; i < termsOf.self_host.counts.buildUploads; i++)
    assert.is((await upload(api, 'shop', zip)).status, 500)
  mkdirSync(dir)
  const { status, text: reply } = await upload(api, 'shop', zip)
  assert.is(status, 201, reply)
})

builds.after(() => server.stop())
builds.run()
