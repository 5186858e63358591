import * as assert from 'uvu/assert'
import { buildKey } from '../../../src/ports/runtime.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { entriesOf, eventOf, fill, type Line } from './importHarness.ts'

const node = await openCommands()
const mine = await plantEnv(node, 'acme')
await fill(node, mine)
const build = await plantBuild(node, mine, { name: 'built' })
const { key: file } = eventOf(await entriesOf(node, mine), 'FileStored') as { key: string }
const zip = buildKey(build)

const exported = suite('an export', { timeoutMs: 60_000 })

const lastRecord = async (): Promise<Line> => (await entriesOf(node, mine)).at(-1)?.line ?? {}

for (const [thing, what, key] of [
  ['file', 'The content of the file a.txt', file],
  ['build', `The zip of build ${build.build_id}`, zip],
] as const)
  exported(`reports a ${thing} whose content is missing in the blobs`, async () => {
    const content = await Array.fromAsync((await node.blobs.get(key)) as AsyncIterable<Buffer>)
    await node.blobs.remove(key)
    const reported = await lastRecord()
    await node.blobs.put(key, Buffer.concat(content))
    const expected = `${what} is missing in the blobs: restore ${key}, or delete the ${thing}, and repeat the export`
    assert.equal(reported, { error: expected })
    assert.ok('end' in (await lastRecord()), 'it is complete again')
  })

exported.run()
