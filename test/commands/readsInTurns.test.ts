import * as assert from 'uvu/assert'
import { parseInMemory } from '../../src/api/http/jsonMemory.ts'
import { ApiMemory } from '../../src/api/http/memory.ts'
import { Past } from '../../src/commands/audit/past.ts'
import { searchRuns } from '../../src/commands/runs/searchRuns.ts'
import type { Recorded } from '../../src/events/event.ts'
import { everyDoc } from '../../src/loops/everyDoc.ts'
import type { Query } from '../../src/ports/readModels.ts'
import { projects } from '../../src/projections/projects.ts'
import { runDoc } from '../support/runDoc.ts'
import { busy, mostPerTurn } from '../support/mostPerTurn.ts'
import { suite } from '../support/suite.ts'

const REQUESTS = 20

/** A collection of 1000 documents that are read synchronously, like those of the embedded read models. */
const collectionOf = <D extends object>(docOf: (n: number) => D, step: () => void) => ({
  find: async ({ from, before, limit }: Query) => {
    busy(2)
    step()
    const numbers = Array.from({ length: 1000 }, (_, n) => String(n).padStart(4, '0'))
    const found = numbers.filter(
      (n) => n >= String(from ?? '') && (before === undefined || n < String(before)),
    )
    const page =
      before === undefined && from !== undefined ? found.slice(0, limit) : found.toReversed().slice(0, limit)
    return { items: page.map((n) => ({ ...docOf(Number(n)), order: n })), total: 1000 }
  },
})

const inTurns = suite('requests that read much')
inTurns('search a few pages of runs in a turn of the event loop, however many they are', async () => {
  const most = await mostPerTurn((step) => {
    const runs = collectionOf(() => runDoc({ at: '2026-05-01T10:00:00.000Z' }), step)
    const search = () =>
      searchRuns(
        { runs } as unknown as Parameters<typeof searchRuns>[0],
        { env_id: 'env', text: 'none' },
        { limit: 1, offset: 0 },
      )
    return Promise.all(Array.from({ length: REQUESTS }, search))
  })
  assert.ok(most <= 3, `${most} pages in one turn`)
})
inTurns('read a few pages of a whole list in a turn', async () => {
  const most = await mostPerTurn((step) => {
    const all = collectionOf((n) => ({ id: n }), step)
    const read = () =>
      Array.fromAsync(
        everyDoc<{ id: number; order: string }>(all as never, {
          id: 'id',
          sort: 'order',
          from: '0',
          equal: {},
        }),
      )
    return Promise.all(Array.from({ length: REQUESTS }, read))
  })
  assert.ok(most <= 3, `${most} pages in one turn`)
})
inTurns('fold a few large facts of the past in a turn', async () => {
  const most = await mostPerTurn((step) => {
    const fact = {
      event: { type: 'ProjectRenamed' },
      at: '2026-05-01T10:00:00.000Z',
      cursor: '1',
    } as unknown as Recorded
    const store = {
      async *read() {
        for (let n = 0; n < 100; n++) {
          busy(2)
          step()
          yield fact
        }
      },
    }
    const fold = () =>
      new Past({ store } as never, { time: '2027-05-01T10:00:00.000Z' }).fold(
        { ...projects, idsOf: () => [] },
        ['a'],
      )
    return Promise.all(Array.from({ length: REQUESTS }, fold))
  })
  assert.ok(most <= 3, `${most} facts in one turn`)
})
inTurns('parse few large bodies in a turn', async () => {
  const body = Buffer.from(`[${'1,'.repeat(100_000)}1]`)
  const most = await mostPerTurn((step) => {
    const memory = new ApiMemory({ env: () => undefined })
    const parse = (json: Buffer): unknown => {
      busy(2)
      step()
      return json
    }
    const ask = () => parseInMemory(memory, 'org', { limit: body.length, read: async () => body, parse })
    return Promise.all(Array.from({ length: REQUESTS }, ask))
  })
  assert.ok(most <= 3, `${most} bodies in one turn`)
})
inTurns.run()
