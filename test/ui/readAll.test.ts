import * as assert from 'uvu/assert'
import { readAll } from '../../src/ui/frame/readAll.ts'
import { suite } from '../support/suite.ts'

interface Item {
  readonly id: string
}

const named = (from: number, to: number): Item[] =>
  Array.from({ length: to - from }, (_, n) => ({ id: `n${from + n}` }))

const reading = suite('a list of the dashboard that is read to its end')

reading('repeats nothing when items are added while it is read', async () => {
  let all = named(1000, 1250)
  const read = await readAll(
    ({ limit, offset }) => {
      const data = all.slice(offset, offset + limit)
      const pagination = { total: all.length, limit, offset, has_more: offset + data.length < all.length }
      all = [{ id: `new${offset}` }, ...all] // the newest is the first
      return Promise.resolve({ data, pagination })
    },
    ({ id }) => id,
  )
  assert.equal(read, named(1000, 1250))
})

reading.run()
