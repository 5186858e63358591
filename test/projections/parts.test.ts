import * as assert from 'uvu/assert'
import { Parts } from '../../src/projections/parts.ts'
import { suite } from '../support/suite.ts'

const parts = suite('the parts of a batch')

/** An engine whose clock advances by what a part takes. */
class Engine {
  ms = 0
  /** The sizes of the parts. */
  readonly sizes: number[] = []
  readonly #parts = new Parts(() => this.ms)

  async store(events: number, msOf: (part: number) => number): Promise<void> {
    const facts = Array.from({ length: events }, (_, n) => n)
    const stored: number[] = []
    await this.#parts.store(facts, async (part) => {
      this.sizes.push(part.length)
      stored.push(...part)
      this.ms += msOf(part.length)
    })
    assert.equal(stored, facts)
  }

  get last(): number {
    return this.sizes.at(-2) ?? 0 // the last one is a rest
  }
}

parts('take two seconds if each event takes as long as the others', async () => {
  const engine = new Engine()
  await engine.store(2000, (part) => part * 20)
  assert.is(engine.last, 100)
  await engine.store(5000, (part) => part * 2)
  assert.is(engine.last, 1000)
})

parts('are large while a fast engine stores them', async () => {
  const engine = new Engine()
  await engine.store(100_000, (part) => 10 + part / 10)
  assert.ok(engine.last > 15_000, String(engine.last))
})

parts(
  'are not small when each takes long for itself, or the engine would never reach the end of the log',
  async () => {
    const engine = new Engine()
    const overloaded = (part: number) => 30_000 + part * 20
    await engine.store(20_000, overloaded)
    assert.ok(engine.last >= 1000, String(engine.last))
    assert.ok(engine.last < 3000, String(engine.last)) // half of the time is that of the events
  },
)

parts('become large again after the least size, and small when the cause has ended', async () => {
  const engine = new Engine()
  await engine.store(2000, (part) => part * 5000)
  assert.ok(engine.last <= 32, String(engine.last))
  await engine.store(20_000, (part) => 20_000 + part * 10)
  assert.ok(engine.last >= 1000, String(engine.last))
  await engine.store(40_000, (part) => part * 20)
  assert.is(engine.last, 100)
})

parts('of few events, as they arrive, do not grow for ever', async () => {
  const engine = new Engine()
  for (let n = 0; n < 100; n++) await engine.store(1 + (n % 7), () => 9000)
  await engine.store(20_000, (part) => part * 20)
  assert.ok(engine.last <= 100, String(engine.last))
})

parts.run()
