import * as assert from 'uvu/assert'
import { Presence } from '../../../src/adapters/mongodb/presence.ts'
import type { Registry, VersionRow } from '../../../src/adapters/mongodb/registry.ts'
import { isAppError } from '../../../src/errors.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const spec = { name: 'runs', version: 1, indexes: [] }
const made: VersionRow = { _id: 'runs__v1', indexes: '[]', checkpoint: null, made: 'once' }

const presence = suite('the presence of a version')

presence('is proved again after the machine was suspended', async () => {
  const machineNow = Date.now
  let row: VersionRow | null = made
  const registry = { row: () => Promise.resolve(row) }
  const there = new Presence(registry as unknown as Registry)
  const read = () => there.read(spec, () => Promise.resolve('documents')).catch((error: unknown) => error)
  assert.is(await read(), 'documents')
  try {
    row = null // another node drops the version meanwhile
    Date.now = () => machineNow() + 60_000
    const failure = await read()
    assert.ok(isAppError(failure), String(failure))
  } finally {
    Date.now = machineNow
  }
})

presence('is proved by a row that is older than the newest one', async () => {
  const registry = {
    row: () => Promise.resolve({ ...made, checkpoint: '1' }),
    rows: () => Promise.resolve([{ ...made, checkpoint: '2' }]),
  }
  const there = new Presence(registry as unknown as Registry)
  const read = () => there.read(spec, () => Promise.resolve('documents'))
  assert.is(await read(), 'documents')
  await there.look()
  assert.is(await read(), 'documents')
})

presence('notices a restore of what was read while an earlier row was trusted', async () => {
  let [checkpoint, looks] = ['1', 0]
  const registry = { row: () => ((looks += 1), Promise.resolve({ ...made, checkpoint })) }
  const there = new Presence(registry as unknown as Registry)
  const read = () => there.read(spec, () => Promise.resolve('documents')).catch((error: unknown) => error)
  await read()
  checkpoint = '2'
  assert.is(await read(), 'documents') // of the later checkpoint, beside the trusted row
  const before = looks
  await until(() => looks > before)
  checkpoint = '1' // it is restored
  const failure = await until(async () => {
    const found = await read()
    return found !== 'documents' && found
  })
  assert.ok(isAppError(failure, 'unavailable'), String(failure))
})

presence.run()
