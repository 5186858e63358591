import { createHash } from 'node:crypto'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { storedFiles } from '../api/storedFiles.ts'
import { deploy, publish } from '../support/build.ts'
import type { Answer } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api, dataDir } = server
const { put } = storedFiles(server)

const SIZE = 300_000

interface Stored {
  /** The path that returns it. */
  readonly path: string
  /** The folder of its blob, and how the blob begins. */
  readonly blob: readonly [folder: string, beginning: string]
}

const stored: Readonly<Record<string, () => Promise<Stored>>> = {
  async file() {
    const { file_id } = await put('reports/large.txt', 'f'.repeat(SIZE))
    return { path: `/files/${file_id}/download`, blob: ['files', 'fff'] }
  },
  async event() {
    const { event_id } = await publish(api, 'large', 'e'.repeat(SIZE))
    return { path: `/events/${event_id}`, blob: ['payloads', '"eee'] }
  },
  async build() {
    const { build_id } = await deploy(api, 'shop', { 'main.js': 'export const one = () => 1' })
    return { path: `/projects/shop/builds/${build_id}/download`, blob: ['builds', 'PK'] }
  },
}

/** The file of a blob. */
const fileOf = ({ blob: [folder, beginning] }: Stored): string => {
  const [file, ...others] = globSync(join(dataDir, `blobs/objects/${folder}~/**`), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path, 'latin1').startsWith(beginning))
  assert.equal(others, [])
  return file as string
}

/** Of the content in a reply. */
const hashOf = ({ status, json, text }: Answer): string => {
  assert.is(status, 200)
  const { data } = (json ?? {}) as { data?: object }
  return createHash('sha256')
    .update(data ? JSON.stringify(data) : text)
    .digest('hex')
}

const damaged = suite('content whose blob is damaged')

for (const [kind, store] of Object.entries(stored))
  damaged(`${kind}: a reply ends with its content, or not at all`, async () => {
    const content = await store()
    const file = fileOf(content)
    const bytes = readFileSync(file)
    const hash = hashOf(await api.send('GET', content.path))

    for (const [how, found] of [
      ['shorter', bytes.subarray(0, bytes.length >> 1)],
      ['longer', Buffer.concat([bytes, Buffer.alloc(100)])],
    ] as const) {
      writeFileSync(file, found)
      const reply = await api.send('GET', content.path).then(hashOf, () => 'ended early')
      const isAsBefore = how === 'longer' && kind === 'event' // it is read up to its known end
      assert.is(reply, isAsBefore ? hash : 'ended early', how)
    }

    rmSync(file)
    const missing = await api.send('GET', content.path)
    assert.is(missing.status, 503)
    assert.match(missing.text, /is missing: |is missing; restore/)

    writeFileSync(file, bytes)
    assert.is(hashOf(await api.send('GET', content.path)), hash)
  })

damaged('the log names the blob of a reply that ended early', () => {
  const lines = server.output.filter((line) => line.includes('A reply failed'))
  for (const key of ['files/', 'payloads/', 'builds/'])
    assert.ok(
      lines.some((line) => line.includes(`The blob ${key}`)),
      key,
    )
})

damaged.after(() => server.stop())

damaged.run()
