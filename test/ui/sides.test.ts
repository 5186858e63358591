import * as assert from 'uvu/assert'
import { compare } from '../../src/ui/pages/audit/compare.ts'
import type { Resource } from '../../src/ui/pages/audit/kind.ts'
import { comparable, isWhole, NOTHING_READ, type PageAt, readOn } from '../../src/ui/pages/audit/sides.ts'
import { randomOf } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

const KIND = { id: 'id', names: ['name'] } as const

const sides = suite('a comparison of two lists that are read page by page')

const timeOf = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()

const pages =
  (all: readonly Resource[]): PageAt =>
  ({ limit, offset }) => {
    const data = all.slice(offset, offset + limit)
    const has_more = offset + data.length < all.length
    return Promise.resolve({ data, pagination: { total: all.length, limit, offset, has_more } })
  }

const keyed = (all: readonly Resource[], name: string): Resource[] => all.map((one) => ({ ...one, name }))

for (const seed of [1, 2, 3, 4, 5])
  sides(`shows no difference that the whole lists do not have (seed ${seed})`, async () => {
    const random = randomOf(seed)
    const chance = (percent: number): boolean => random(100) < percent
    const created = Array.from({ length: 700 }, (_, n) => ({
      id: `r${n}`,
      // Several are created in the same moment.
      created_at: timeOf(Math.floor(n / (1 + random(3)))),
    })).toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
    const then = keyed(
      created.filter((_, n) => n > 150 && chance(90)),
      'then',
    )
    const now = created.filter(() => chance(80)).map((one) => ({ ...one, name: chance(50) ? 'then' : 'now' }))
    const whole = new Map(compare(KIND, then, now).map((one) => [one.id, one.difference]))
    const at = { past: pages(then), present: pages(now) }
    let read = NOTHING_READ
    let shown = 0
    for (let wanted = 50; !isWhole(read); wanted += 90) {
      read = await readOn('id', read, at, wanted)
      const both = comparable('id', read)
      const rows = compare(KIND, both.past, both.present)
      for (const { id, difference } of rows) assert.is(difference, whole.get(id), id)
      assert.ok(rows.length >= shown, 'what was compared remains')
      shown = rows.length
    }
    assert.is(shown, whole.size)
  })

sides('reads an empty side to its end', async () => {
  const read = await readOn('id', NOTHING_READ, { past: pages([]), present: pages([]) }, 10)
  assert.ok(isWhole(read))
  assert.equal(comparable('id', read), { past: [], present: [] })
})

sides('reads on when more than a page was created while it was read', async () => {
  const created = (from: number, to: number): Resource[] =>
    Array.from({ length: to - from }, (_, n) => ({
      id: `r${from + n}`,
      created_at: timeOf(from + n),
    })).reverse()
  const then = created(0, 250)
  let all = then
  const growing: PageAt = async (page) => {
    const read = await pages(all)(page)
    if (page.offset === 0) all = created(0, 360)
    return read
  }
  const read = await readOn('id', NOTHING_READ, { past: pages(then), present: growing }, 1000)
  assert.ok(isWhole(read))
  const { past, present } = comparable('id', read)
  const same = compare(KIND, past, present).filter(({ difference }) => difference === 'same')
  assert.is(same.length, then.length)
})

sides.run()
