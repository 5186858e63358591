import * as assert from 'uvu/assert'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { completeUpload } from '../../../src/commands/files/completeUpload.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import { ExportedBlobs } from '../../../src/commands/transfer/exportedBlobs.ts'
import { RecordWriter } from '../../../src/commands/transfer/records.ts'
import { buildKey, functionsKey, oldFunctionsKey } from '../../../src/ports/runtime.ts'
import { exampleOf } from '../../events/examples.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { type Entry, entriesOf, eventOf, fill, handle, importInto, type Line } from './importHarness.ts'

const node = await openCommands()
const mine = await plantEnv(node, 'acme')
await fill(node, mine)
/** So many that their list is in the blobs. */
const functions = Array.from({ length: 3000 }, (_, n) => ({ ns: 'main', var: `f${1000 + n}` }))
const build = await plantBuild(node, mine, { name: 'built', functions })
const { key: file } = eventOf(await entriesOf(node, mine), 'FileStored') as { key: string }
const zip = buildKey(build)
const list = build.functions_ref?.key ?? ''
const exportedList = oldFunctionsKey(zip)

const lastOf = (entries: readonly Entry[]): Line => entries.at(-1)?.line ?? {}
const lastRecord = async (): Promise<Line> => lastOf(await entriesOf(node, mine))

const bytesOf = async (key: string): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync((await node.blobs.get(key)) as AsyncIterable<Buffer>))

/** The bytes with a changed bit in the first of them. */
const damaged = ([first = 0, ...others]: Buffer): Buffer => Buffer.from([first ^ 1, ...others])

const exported = suite('an export', { timeoutMs: 60_000 })

for (const [thing, what, key] of [
  ['file', 'The content of the file a.txt', file],
  ['build', `The zip of build ${build.build_id}`, zip],
  ['build', `The list of functions of build ${build.build_id}`, list],
] as const)
  exported(
    `fails while ${key === list ? 'the list of functions' : `the content`} of a ${thing} is missing or damaged`,
    async () => {
      const content = await bytesOf(key)
      await node.blobs.remove(key)
      const missing = await lastRecord()
      await node.blobs.put(key, damaged(content))
      const changed = await lastRecord()
      await node.blobs.put(key, content)
      const todo = `restore ${key}, or delete the ${thing}, and repeat the export`
      assert.equal(missing, { error: `${what} is missing in the blobs: ${todo}` })
      assert.equal(changed, { error: `${what} is damaged in the blobs: ${todo}` })
      assert.ok('end' in (await lastRecord()), 'it is complete again')
    },
  )

exported('fails while a payload is damaged or cut', async () => {
  const large = { event_type: 'large', event_data: 'x'.repeat(100_000), source: 'api' }
  await handle(node, await publishEvent(node.deps, large, mine.caller))
  await node.views.settled()
  const [key = ''] = (await entriesOf(node, mine)).flatMap(({ line }) => {
    const { event_data_ref: ref } = (line['event'] ?? {}) as { event_data_ref?: { key: string } }
    return ref ? [ref.key] : []
  })
  const content = await bytesOf(key)
  for (const other of [damaged(content), content.subarray(1)]) {
    await node.blobs.put(key, other)
    assert.equal(await lastRecord(), {
      error: `The payload ${key} is damaged in the blobs: restore it, and repeat the export`,
    })
  }
  await node.blobs.put(key, content)
  assert.ok('end' in (await lastRecord()), 'it is complete again')
})

exported('compares the body of a webhook, whose key does not contain its hash', async () => {
  const body = Buffer.alloc(50_000, 'b')
  const content = async function* () {
    yield body
    await Promise.resolve()
  }
  const { env_id } = mine
  const ref = await node.deps.payloads.keepBytes(content(), 10, { env_id })
  if (Buffer.isBuffer(ref)) throw new Error('Expected a reference')
  const { input, ...requested } = exampleOf.RunRequested
  const fact = { ...requested, input: { ...input, kind: 'webhook' as const, body_ref: ref } }
  const exporting = async () => {
    const blobs = new ExportedBlobs(node.deps, { env_id, writer: new RecordWriter() })
    await Array.fromAsync(blobs.all())
    return blobs
  }
  ;(await exporting()).demandPayloads(fact)
  await node.blobs.put(ref.key, damaged(body))
  const blobs = await exporting()
  assert.throws(() => blobs.demandPayloads(fact), `The payload ${ref.key} is damaged`)
  await node.blobs.remove(ref.key)
  ;(await exporting()).demandPayloads(fact)
})

exported('fails while the content of a file that was uploaded in parts is cut', async () => {
  const { deps } = node
  const asked = { path: 'parts.bin', content_type: 'text/plain', run_id: null, rights: null }
  const { upload_id } = await beginUpload(deps, asked, mine.caller)
  const content = async function* () {
    yield Buffer.from('abc')
    await Promise.resolve()
  }
  const part = { upload_id, part_number: 1, size: 3, content: content() }
  await putPart(deps, part, mine.caller.cause)
  const { key } = await completeUpload(deps, { upload_id, rights: null }, mine.caller.cause)
  await node.views.settled()
  assert.ok('end' in (await lastRecord()), 'it is complete')
  await node.blobs.put(key, Buffer.from('ab'))
  assert.equal(await lastRecord(), {
    error: `The content of the file parts.bin is damaged in the blobs: restore ${key}, or delete the file, and repeat the export`,
  })
  await node.blobs.put(key, Buffer.from('abc'))
})

exported('leaves out a list of functions that belongs to no build', async () => {
  const before = await entriesOf(node, mine)
  for (const stray of [exportedList, functionsKey(zip, '0'.repeat(64))])
    await node.blobs.put(stray, Buffer.from('[]'))
  const after = await entriesOf(node, mine)
  assert.equal(lastOf(after), lastOf(before))
})

exported(
  'of an earlier version whose list of functions is missing or damaged is refused by its import, which names it',
  async () => {
    const entries = await entriesOf(node, mine)
    const isList = ({ line }: Entry) => line['blob'] === exportedList
    const refusal = async (file: readonly Entry[]): Promise<string> =>
      importInto(await openCommands(), file).then(() => 'none', String)
    const changed = entries.map((entry) =>
      isList(entry) ? { ...entry, bytes: damaged(entry.bytes) } : entry,
    )
    assert.match(await refusal(changed), `functions_ref: The blob ${exportedList} is damaged`)
    const end = lastOf(entries)['end'] as { blobs: number }
    const missing = [
      ...entries.slice(0, -1).filter((entry) => !isList(entry)),
      { line: { end: { ...end, blobs: end.blobs - 1 } }, bytes: Buffer.alloc(0) },
    ]
    assert.match(await refusal(missing), `functions_ref: The blob ${exportedList} is not in the file`)
    assert.is(await refusal(entries), 'none')
  },
)

exported(
  'of a node of the former version, which lists the key of this one beside its own, is imported',
  async () => {
    const entries = await entriesOf(node, mine)
    const at = entries.findIndex(({ line }) => line['blob'] === exportedList)
    const { line, bytes } = entries[at] ?? { line: {}, bytes: Buffer.alloc(0) }
    const end = lastOf(entries)['end'] as { blobs: number }
    const both = [
      ...entries.slice(0, at),
      { line: { ...line, blob: list }, bytes },
      ...entries.slice(at, -1),
      { line: { end: { ...end, blobs: end.blobs + 1 } }, bytes: Buffer.alloc(0) },
    ]
    const target = await openCommands()
    await importInto(target, both)
    await target.views.settled()
    assert.equal(target.views.directory.projectById(build.project_id)?.deployed?.functions, functions)
  },
)

exported.run()
