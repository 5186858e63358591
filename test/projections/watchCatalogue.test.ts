import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { START } from '../../src/events/event.ts'
import { silent } from '../../src/logger.ts'
import type { Fill } from '../../src/projections/fill.ts'
import { nameOf } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { runs } from '../../src/projections/runs.ts'
import { watchCatalogue } from '../../src/projections/watchCatalogue.ts'
import { until } from '../support/until.ts'
import { forward, life, newEvents, projecting, withWriter } from './projectedNames.ts'

const PAGES = 50
const PAGE_MS = 2

const watch = projecting('the watch over the catalogue')

watch(
  'leaves the event loop to requests while it reads a long log',
  async ({ store, readModels, stopping }) => {
    let turns = 0
    const turn = () => {
      turns++
      if (!stopping.signal.aborted) setImmediate(turn)
    }
    const long = forward(store, async function* () {
      for (let page = 1; page <= PAGES; page++) {
        const until = performance.now() + PAGE_MS
        while (performance.now() < until); // as the parsing of a page
        yield { events: [], cursor: String(page).padStart(16, '0'), caughtUp: false }
      }
    })
    setImmediate(turn)
    await watchCatalogue({ store: long, readModels }, stopping.signal)
    assert.ok(turns >= PAGES / 2, `${turns} turns of the event loop`)
  },
)

watch('begins when no thread fills a read model any more', async ({ store, readModels, stopping }) => {
  await store.append('a', newEvents(life('a', 1)), 'none')
  const filled = Promise.withResolvers<void>()
  let wholeReads = 0
  const counting = forward(store, (options) => {
    if (!options.types) wholeReads++
    return store.subscribe(options)
  })
  const fill: Fill = ({ name }) => (name === runs.name ? filled.promise : Promise.resolve())
  const projectors = new Projectors({ store: counting, readModels, logger: silent, fill })
  const running = projectors.run(stopping.signal)
  const head = await store.head()
  for (const name of projectors.names.filter((each) => each !== nameOf(runs)))
    await projectors.reach(name, head)
  assert.is(wholeReads, 0)
  filled.resolve()
  await until(() => wholeReads > 0)
  stopping.abort()
  await running
})

watch(
  'shares the read of the log with new read models, although each of them is created in another time',
  async ({ store, readModels, stopping }) => {
    await store.append('a', newEvents(life('a', 1)), 'none')
    const head = await store.head()
    let reads = 0
    const counting = forward(store, (options) => {
      if ((options.after ?? START) === START) reads++
      return store.subscribe(options)
    })
    let turns = 0
    const slow = withWriter(readModels, ({ checkpoint }) => ({
      async checkpoint() {
        for (let left = ++turns; left > 0; left--) await nextTurn()
        return checkpoint()
      },
    }))
    const projectors = new Projectors({ store: counting, readModels: slow, logger: silent })
    const running = projectors.run(stopping.signal)
    await Promise.all(projectors.names.map((name) => projectors.reach(name, head)))
    const catalogue = readModels.reader({ name: 'catalogue', version: 1, indexes: [] })
    await until(async () => (await catalogue.count()) === 1)
    assert.is(reads, 1)
    stopping.abort()
    await running
  },
)

watch.run()
