import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import { projectionOf } from '../../../src/projections/index.ts'
import type { CollectionSpec, Query } from '../../../src/ports/readModels.ts'
import type { Suite } from '../../support/suite.ts'
import { cursorOf, type OpenReadModels } from './collection.ts'

const BOUNDS = [{ from: '' }, { from: 'a', before: 'b' }, { before: 'b' }, {}] as const

/** Every form of query that the port allows for an index. */
const formsOf = ({ equal, sort, sparse }: CollectionSpec['indexes'][number]): Query[] => {
  const base = { equal: Object.fromEntries(equal.map((field) => [field, 'x'])), sort, limit: 20, offset: 0 }
  return BOUNDS.filter((bounds) => !sparse || Object.keys(bounds).length > 0).flatMap((bounds) => [
    { ...base, ...bounds },
    { ...base, ...bounds, descending: true },
    { ...base, ...bounds, descending: true, totals: false, offset: 4999 },
    { ...base, ...bounds, offset: 4999 },
  ])
}

/** A query reads along its index, so its cost does not depend on documents that it does not concern. */
export const plansContract = (plans: Suite<OpenReadModels>): void => {
  for (const { name, version, indexes } of Object.values(projectionOf))
    plans(`read ${name} along its indexes`, async ({ readModels, planOf }) => {
      const spec: CollectionSpec = { name: `${name}_${newId().replaceAll('-', '')}`, version, indexes }
      const writer = await readModels.writer(spec)
      const doc = Object.fromEntries(
        indexes.flatMap(({ equal, sort }) => [...equal, sort]).map((f) => [f, 'x']),
      )
      await writer.write([{ id: 'a', doc, cursor: cursorOf(1) }], cursorOf(1))
      for (const query of indexes.flatMap(formsOf)) {
        assert.is(
          (await writer.find({ ...query, offset: 0, totals: false })).items.length,
          isIn(query) ? 1 : 0,
        )
        for (const step of (await planOf?.(spec, query)) ?? []) {
          assert.match(step, isWhole(query) ? /USING/ : /^SEARCH .* USING/, JSON.stringify(query))
          assert.not.match(step, /TEMP B-TREE|COLLSCAN/, JSON.stringify(query))
        }
      }
    })
}

/** Whether the document "x" is within the bounds. */
const isIn = ({ before = 'y' }: Query): boolean => 'x' < String(before)

/** Whether a query asks for every document. */
const isWhole = ({ equal, from, before }: Query): boolean =>
  Object.keys(equal).length === 0 && from === undefined && before === undefined
