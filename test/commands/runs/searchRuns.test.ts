import * as assert from 'uvu/assert'
import { openReadModels } from '../../../src/adapters/embedded/readModels/index.ts'
import { MOST_SEARCHED, searchRuns } from '../../../src/commands/runs/searchRuns.ts'
import type { RunFilter } from '../../../src/commands/runs/runFilter.ts'
import { retryIdOf } from '../../../src/domain/run.ts'
import { newId } from '../../../src/ids.ts'
import type { RunDoc } from '../../../src/projections/runs.ts'
import { runs } from '../../../src/projections/runs.ts'
import { runDoc } from '../../support/runDoc.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'

const at = '2026-05-01T10:00:00.000Z'
const orderOf = (n: number) => `${at}/${String(n).padStart(16, '0')}`
const first = runDoc({ at, fn: 'a/often' })

const readModels = openReadModels({ dir: tempDir() })
const writer = await readModels.writer<RunDoc>(runs)
let position = 0
/** Stores runs, the oldest first. */
const plant = async (docs: readonly Partial<RunDoc>[]): Promise<void> => {
  const writes = docs.map((doc) => {
    const cursor = String(++position).padStart(16, '0')
    const run_id = doc.run_id ?? newId()
    return { id: run_id, doc: { ...first, ...doc, run_id, order: orderOf(position) }, cursor }
  })
  await writer.write(writes, String(position).padStart(16, '0'))
}

const views = { runs: readModels.reader<RunDoc>(runs) }
const page = { limit: 20, offset: 0 }
const search = (filter: Omit<RunFilter, 'env_id'> & { chain?: string }, range = {}) =>
  searchRuns(views, { env_id: 'env', ...filter }, { ...page, ...range })

await plant([
  { fn: 'a/rare', project_id: 'other' },
  { fn: 'a/foreign', env_id: 'env2', stream_id: 's2', project_id: 'p2' },
])
await plant(Array.from({ length: MOST_SEARCHED }, () => ({})))
await plant([{ fn: 'a/rare', project_id: 'other' }])

const searching = suite('a search of runs')

searching('looks at a limited number of runs, and names where it ended', async () => {
  const found = await search({ text: 'RARE' })
  assert.equal([found.items.length, found.total], [1, 1])
  assert.is(found.searched_to, orderOf(4))
  const rest = await search({ text: 'RARE' }, { before: found.searched_to })
  assert.equal([rest.total, rest.searched_to, rest.items[0]?.order], [1, undefined, orderOf(1)])
})

searching('along an index alone counts as many', async () => {
  const found = await search({ stream_id: 's' })
  assert.equal([found.items.length, found.total], [20, MOST_SEARCHED])
  const last = await search({ stream_id: 's' }, { offset: MOST_SEARCHED - 5 })
  assert.is(last.items.length, 5)
  assert.is(last.items.at(-1)?.order, last.searched_to)
  const rest = await search({ stream_id: 's' }, { before: last.searched_to })
  assert.equal([rest.items.length, rest.total, rest.searched_to], [2, 2, undefined])
  assert.equal(await search({ fn: 'a/rare' }, { limit: 1 }).then(({ total }) => total), 2)
  assert.equal((await search({ fn: 'a/rare' }, { offset: 7 })).total, 2)
})

searching('finds nothing of another environment', async () => {
  const none = { items: [], total: 0 }
  for (const filter of [{ stream_id: 's2' }, { project_id: 'p2' }, { fn: 'a/foreign' }])
    assert.equal(await search(filter), none)
  const [foreign] = (await searchRuns(views, { env_id: 'env2', stream_id: 's2' }, page)).items
  assert.ok(foreign)
  assert.equal(await search({ chain: foreign?.run_id ?? '' }), none)
})

searching('pages through what matches several filters', async () => {
  const both = { fn: 'a/rare', project_id: 'other' }
  const pages = [await search(both, { limit: 1 }), await search(both, { limit: 1, offset: 1 })]
  assert.equal(
    pages.map(({ total }) => total),
    [2, 2],
  )
  assert.is(new Set(pages.map(({ items }) => items[0]?.run_id)).size, 2)
})

searching('finds a chain by any of its attempts', async () => {
  const origin = newId()
  const second = retryIdOf(origin)
  const chain = { fn: 'a/retried', origin_run_id: origin }
  const error = { code: 'function_failed', message: 'Card was DECLINED' }
  const failed = { status: 'failed', error, error_code: error.code } as const
  await plant([
    {
      ...chain,
      run_id: origin,
      origin_run_id: null,
      ...failed,
      error_order: orderOf(position + 1),
      retried_by: second,
    },
    {
      ...chain,
      run_id: second,
      ...failed,
      error_order: orderOf(position + 2),
      retried_by: retryIdOf(second),
    },
    { ...chain, run_id: retryIdOf(second) },
  ])
  for (const id of [origin, second]) {
    const { items, total } = await search({ chain: id })
    assert.is(total, 3)
    assert.equal(
      items.map(({ run_id }) => run_id),
      [retryIdOf(second), second, origin],
    )
  }
  assert.is((await search({ chain: origin, final: true })).items[0]?.run_id, retryIdOf(second))
  assert.is((await search({ chain: origin, final: false })).total, 2)
  assert.is((await search({ chain: origin, error_code: 'function_failed' })).total, 2)
  assert.is((await search({ error_code: 'function_failed' })).total, 2)
  assert.is((await search({ error_code: 'function_failed', text: 'declined', final: false })).total, 2)
  assert.is((await search({ error_code: 'function_failed', final: true })).total, 0)
})

searching.after(() => readModels.close())
searching.run()
