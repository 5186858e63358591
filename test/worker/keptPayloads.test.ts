import { readFileSync, writeFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { pathOf } from '../../src/adapters/embedded/blobFiles.ts'
import { LostBlob } from '../../src/content/lostBlob.ts'
import { Payloads } from '../../src/content/payloads.ts'
import { isAppError } from '../../src/errors.ts'
import { KeptPayloads } from '../../src/worker/keptPayloads.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const kept = suite('a large value that a run fetches in chunks')
const payloads = new Payloads(await openBlobs({ dir: tempDir() }))
const text = 'x'.repeat(3_000_000)
const { ref } = await payloads.keep(text, { env_id: 'env' })
if (!ref) throw new Error('Expected a reference')

kept('arrives unchanged, at most a mebibyte at a time', async () => {
  const values = new KeptPayloads(payloads)
  const { handle, size } = values.add(ref)
  const chunks: Buffer[] = []
  for (let from = 0; from < size;) {
    const chunk = Buffer.from(await values.read(handle, from), 'base64')
    assert.ok(chunk.length > 0 && chunk.length <= 1 << 20)
    chunks.push(chunk)
    from += chunk.length
  }
  assert.is(JSON.parse(Buffer.concat(chunks).toString()), text)
})

kept('ends at its end, also for a reader that asks for more', async () => {
  const values = new KeptPayloads(payloads)
  const { handle, size } = values.add(ref)
  assert.is(await values.read(handle, size), '')
  assert.is(await values.read(handle, Number.MAX_SAFE_INTEGER), '')
})

kept('is withheld at its end if a bit of it has changed', async () => {
  const dir = tempDir()
  const changed = new Payloads(await openBlobs({ dir }))
  const stored = await changed.keep(text, { env_id: 'env' })
  if (!stored.ref) throw new Error('Expected a reference')
  const { key, size } = stored.ref
  const file = pathOf({ root: `${dir}/objects` }, key)
  const bytes = readFileSync(file)
  bytes[5] = (bytes[5] ?? 0) ^ 1
  writeFileSync(file, bytes)
  const values = new KeptPayloads(changed)
  const { handle } = await values.addInput(stored.ref)
  for (let reads = 0; reads < 2; reads++) {
    let from = 0
    try {
      while (from < size) from += Buffer.from(await values.read(handle, from), 'base64').length
      assert.unreachable()
    } catch (error) {
      assert.ok(error instanceof LostBlob)
      assert.match(error.message, `The blob ${key} is damaged`)
      assert.is(values.outage, error)
    }
    assert.is(from, 2 << 20)
  }
})

kept('is refused to a run that was not given it', async () => {
  const other = new KeptPayloads(payloads)
  other.add(ref)
  for (const [values, handle] of [
    [new KeptPayloads(payloads), 0],
    [other, 1],
  ] as const)
    try {
      await values.read(handle, 0)
      assert.unreachable()
    } catch (error) {
      assert.ok(isAppError(error, 'bad_request'))
    }
})

kept.run()
