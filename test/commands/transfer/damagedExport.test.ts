import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { exportEnv } from '../../../src/commands/transfer/exportEnv.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import { TransferKey } from '../../../src/secrets/transferKey.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'

const CONTENT = 'the content of a file '.repeat(200)
const NAME = 'shop'

const transferKey = new TransferKey(Buffer.alloc(32, 5))
const cause = { correlation_id: newId(), actor: 'operator' }
const [source, target] = await Promise.all([openCommands(), openCommands()])
const { caller, env_id } = await plantEnv(source, 'acme')
await createProject(source.deps, { name: NAME }, caller)
const content = async function* () {
  yield Buffer.from(CONTENT)
  await Promise.resolve()
}
const stored = {
  path: 'a.txt',
  content_type: 'text/plain',
  run_id: null,
  rights: null,
  announced: CONTENT.length,
  content,
}
await storeFile(source.deps, stored, caller.cause)
await source.views.settled()
const whole = Buffer.concat(await Array.fromAsync(await exportEnv(source.deps, { env_id, transferKey })))

/** Resolves with the message of the refusal; null if the file was imported. */
const refusalOf = async (file: Buffer): Promise<string | null> => {
  const chunks = async function* () {
    yield file
    await Promise.resolve()
  }
  try {
    await importEnv(target.deps, { content: chunks(), transferKey }, cause)
    return null
  } catch (error) {
    if (isAppError(error, 'bad_request')) return error.message
    throw error
  }
}

const flipped = (at: number): Buffer => {
  const bytes = Buffer.from(whole)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8))
  return bytes
}

const linesOf = (file: Buffer): string[] => file.toString('latin1').split(/(?<=\n)/)
const joined = (lines: readonly string[]): Buffer => Buffer.from(lines.join(''), 'latin1')

const damaged = suite('a damaged export', { timeoutMs: 120_000 })

damaged('is refused, whatever byte is flipped, and nothing that was flipped is stored', async () => {
  for (let at = 0; at < whole.length; at += 7)
    assert.ok(await refusalOf(flipped(at)), `byte ${at}: ${String(whole.subarray(at - 20, at + 20))}`)
  await target.views.settled()
  assert.is(await target.views.envs.get(env_id), null, 'the environment was not created')
})

damaged('names the place', async () => {
  const at = whole.indexOf(CONTENT)
  assert.is(
    await refusalOf(flipped(at + 10)),
    `The file is damaged after byte ${at}: copy it again, or export the environment again`,
  )
})

damaged('is refused wherever it was cut', async () => {
  for (let size = 0; size < whole.length; size += 11)
    assert.ok(await refusalOf(whole.subarray(0, size)), `${size} bytes`)
})

damaged('is refused with a line that was removed, repeated or moved', async () => {
  const lines = linesOf(whole)
  for (const n of lines.keys()) {
    assert.ok(await refusalOf(joined(lines.toSpliced(n, 1))), `without line ${n}`)
    assert.ok(await refusalOf(joined(lines.toSpliced(n, 0, lines[n] ?? ''))), `line ${n} twice`)
    const next = lines[n + 1]
    if (next !== undefined)
      assert.ok(await refusalOf(joined(lines.toSpliced(n, 2, next, lines[n] ?? ''))), `line ${n} moved`)
  }
})

damaged('leaves nothing that an import of the whole file would keep', async () => {
  assert.is(await refusalOf(whole), null)
  const [file] = (await target.views.files.find({ equal: { env_id }, sort: 'path', limit: 1, offset: 0 }))
    .items
  const [original] = (await source.views.files.find({ equal: { env_id }, sort: 'path', limit: 1, offset: 0 }))
    .items
  assert.equal(file && { ...file, storage_backend: '' }, original && { ...original, storage_backend: '' })
  const [{ key } = { key: '' }] = await Array.fromAsync(target.blobs.list(`files/${env_id}/`))
  assert.ok((await buffer(await target.blobs.get(key))).equals(Buffer.from(CONTENT)))
})

damaged.run()
