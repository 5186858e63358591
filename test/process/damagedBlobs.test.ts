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

/** The same with another bit in the middle. */
const flipped = (bytes: Buffer): Buffer => {
  const others = Buffer.from(bytes)
  others.writeUInt8(others.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1)
  return others
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
      ['changed', flipped(bytes)],
    ] as const) {
      writeFileSync(file, found)
      const reply = await api.send('GET', content.path).then(hashOf, () => 'ended early')
      if (kind !== 'event' || how === 'shorter') assert.is(reply, 'ended early', how)
      else if (how === 'longer') assert.is(reply, hash) // it is read up to its known end
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
