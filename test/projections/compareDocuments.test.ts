import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import type { ReadModels, Write } from '../../src/ports/readModels.ts'
import { Comparison } from '../../src/projections/compareDocuments.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const compared = suite<{ readModels: ReadModels }>('the comparison of documents', { timeoutMs: 30_000 })
compared.before.each((context) => {
  context.readModels = openReadModels({ dir: tempDir() })
})
compared.after.each(({ readModels }) => readModels.close())

const signal = new AbortController().signal
const written = async (
  readModels: ReadModels,
  name: string,
  writes: readonly Write[],
  checkpoint: string,
) => {
  const writer = await readModels.writer({ name, version: 1, indexes: [] })
  await writer.write(writes, checkpoint)
  return writer
}
const idsOf = (differences: readonly { readonly id: string }[]) => differences.map(({ id }) => id)

compared('finds a document that lacks an event, although both collections are past it', async (context) => {
  const { readModels } = context
  const before = await written(readModels, 'old', [{ id: 'a', doc: { n: 1 }, cursor: '1' }], '9')
  const after = await written(readModels, 'new', [{ id: 'a', doc: { n: 2 }, cursor: '2' }], '9')
  const comparison = new Comparison(before, after)
  await comparison.run(signal)
  const { differences, first_differences } = await comparison.end()
  assert.is(differences, 1)
  assert.equal(first_differences, [{ id: 'a', before: { n: 1 }, after: { n: 2 } }])
})

compared('compares a document that one collection has not reached at the end', async ({ readModels }) => {
  const before = await written(readModels, 'old', [{ id: 'a', doc: { n: 1 }, cursor: '1' }], '1')
  const after = await written(readModels, 'new', [{ id: 'a', doc: { n: 2 }, cursor: '2' }], '2')
  const comparison = new Comparison(before, after)
  await comparison.run(signal)
  await before.write([{ id: 'a', doc: { n: 2 }, cursor: '2' }], '2')
  assert.is((await comparison.end()).differences, 0)
})

compared('finds documents that only one collection has', async ({ readModels }) => {
  const before = await written(readModels, 'old', [{ id: 'a', doc: { n: 1 }, cursor: '1' }], '9')
  const after = await written(readModels, 'new', [{ id: 'b', doc: { n: 1 }, cursor: '1' }], '9')
  const comparison = new Comparison(before, after)
  await comparison.run(signal)
  const { differences, first_differences } = await comparison.end()
  assert.is(differences, 2)
  assert.equal(idsOf(first_differences).toSorted(), ['a', 'b'])
})

compared('waits for the removal of a document that the other collection has forgotten', async (context) => {
  const { readModels } = context
  const before = await written(readModels, 'old', [{ id: 'a', doc: null, cursor: '2' }], '3')
  const after = await written(readModels, 'new', [{ id: 'a', doc: { n: 1 }, cursor: '1' }], '1')
  assert.is(await before.forgetRemovals('2'), 1)
  const comparison = new Comparison(before, after)
  await comparison.run(signal)
  await after.write([{ id: 'a', doc: null, cursor: '2' }], '3')
  assert.is((await comparison.end()).differences, 0)
})

compared('a removed document equals a missing one', async ({ readModels }) => {
  const before = await written(readModels, 'old', [{ id: 'a', doc: null, cursor: '2' }], '9')
  const after = await written(readModels, 'new', [], '9')
  const comparison = new Comparison(before, after)
  await comparison.run(signal)
  assert.is((await comparison.end()).differences, 0)
})

compared.run()
