import * as assert from 'uvu/assert'
import { watchCatalogue } from '../../src/projections/watchCatalogue.ts'
import { forward, projecting } from './projectedNames.ts'

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

watch.run()
