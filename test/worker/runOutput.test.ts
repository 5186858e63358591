import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { AppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { openLogger } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { RunOutput } from '../../src/worker/runOutput.ts'
import { openWatchedStore } from '../domain/watchedStore.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

type Context = ReturnType<typeof openWatchedStore> & {
  run_id: string
  open: () => RunOutput
  output: RunOutput
  logged: string[]
}

const partsOf = async (store: EventStore, run_id: string) =>
  (await Array.fromAsync(store.read(streamOf.runLog(run_id)))).flatMap(({ event }) =>
    event.type === 'RunLogged' ? [event.lines] : [],
  )
const textsOf = async (store: EventStore, run_id: string) =>
  (await partsOf(store, run_id)).flat().map(({ text }) => text)

const output = suite<Context>('the output of a run')
output.before.each((context) => {
  const opened = openWatchedStore()
  const run_id = newId()
  const logged: string[] = []
  const logger = openLogger((line) => void logged.push(line))
  const deps = { aggregates: openAggregates(opened.store), logger }
  Object.assign(context, opened, { run_id, logged })
  context.open = () => new RunOutput(deps, run_id, { env_id: 'env', correlation_id: 'c' })
  context.output = context.open()
})
output.after.each(({ store }) => store.close())

output('that printed nothing costs nothing', async ({ output, watch }) => {
  await output.close()
  assert.equal([watch.appends, watch.reads], [0, 0])
})

output(
  'is durable when it is closed, in order and with its source',
  async ({ output, store, run_id, watch }) => {
    output.write({ source: 'stdout', text: 'one' })
    output.write({ source: 'stderr', text: 'two' })
    output.write({ source: 'stdout', text: '' })
    assert.is(watch.appends, 0) // O1
    await output.close()
    const [lines = []] = await partsOf(store, run_id)
    assert.equal(
      lines.map(({ source, text }) => [source, text]),
      [
        ['stdout', 'one'],
        ['stderr', 'two'],
        ['stdout', ''],
      ],
    )
    for (const { at } of lines) assert.is(new Date(at).toISOString(), at)
    assert.is(watch.appends, 1)
  },
)

output(
  'of a run that was returned is followed by the output of its next worker',
  async ({ open, output, store, run_id }) => {
    output.write({ source: 'stdout', text: 'loaded' })
    await output.close()
    const next = open()
    next.write({ source: 'stdout', text: 'loaded again' })
    await next.close()
    assert.equal(await textsOf(store, run_id), ['loaded', 'loaded again'])
  },
)

output('is visible within a second while the run continues', async ({ output, store, run_id, watch }) => {
  for (const text of ['one', 'two', 'three']) {
    const appended = new Promise<string>((resolve) => {
      watch.before = async () => resolve('appended')
    })
    output.write({ source: 'stdout', text })
    const late = delay(1000, 'late', { ref: false }) // timers keep their order, however long the machine stalls
    assert.is(await Promise.race([appended, late]), 'appended')
    await until(async () => (await textsOf(store, run_id)).includes(text))
  }
  await output.close()
  assert.equal(await textsOf(store, run_id), ['one', 'two', 'three'])
})

output('of many lines is stored in few parts, one at a time', async ({ output, store, run_id, watch }) => {
  let busy = 0
  watch.before = async () => assert.is(++busy, 1)
  watch.after = async () => {
    busy--
  }
  const texts = Array.from({ length: 5000 }, (_, i) => `line ${i} ${'x'.repeat(20)}`)
  for (const text of texts) output.write({ source: 'stdout', text })
  await output.close()
  assert.equal(await textsOf(store, run_id), texts)
  assert.is(watch.appends, 5)
})

output('is kept up to 256 KiB, then a mark', async ({ output, store, run_id }) => {
  const text = 'ü'.repeat(511) // with its newline 1023 bytes, 256 of them are 256 bytes short of the cap
  for (let i = 0; i < 1000; i++) output.write({ source: 'stdout', text })
  await output.close()
  const texts = await textsOf(store, run_id)
  assert.is(texts.length, 257)
  assert.equal(texts.at(-1), '… more output was cut off')
  assert.ok(texts.slice(0, -1).every((each) => each === text))
  for (const part of await partsOf(store, run_id))
    assert.ok(Buffer.byteLength(part.map((line) => line.text).join('')) <= 64 << 10)
})

output('is kept up to 10,000 lines, then a mark', async ({ output, store, run_id }) => {
  for (let i = 0; i < 20_000; i++) output.write({ source: 'stdout', text: '' })
  await output.close()
  const texts = await textsOf(store, run_id)
  assert.equal([texts.length, texts.at(-1)], [10_001, '… more output was cut off'])
})

output('waits for an event store that is away, and is stored once', async (context) => {
  const { output, store, run_id, watch, logged } = context
  const away = () => Promise.reject(new AppError('unavailable', 'away'))
  watch.before = (append) => (append === 1 ? away() : Promise.resolve())
  watch.after = (append) => (append === 2 ? away() : Promise.resolve()) // stored, and its answer lost
  output.write({ source: 'stdout', text: 'planted' })
  await output.close()
  output.write({ source: 'stdout', text: 'next' })
  await output.close()
  assert.equal(await textsOf(store, run_id), ['planted', 'next'])
  assert.is(logged.length, 2)
  assert.not(logged.join('').includes('planted'))
})

output('counts as memory of its process until it is stored or dropped', async ({ output, watch }) => {
  let held = 0
  const hold = (bytes: number) => {
    held += bytes
    return () => void (held -= bytes)
  }
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  watch.before = (append) => answers[append - 1]?.promise ?? Promise.resolve()
  const bytesOf = (text: string) => 256 + 2 * text.length
  const texts = ['ü'.repeat(32 << 10), 'dropped']
  for (const text of texts) output.write({ source: 'stdout', text }, hold)
  const closed = output.close()
  assert.is(held, bytesOf(texts.join('')) + 256)
  answers[0]?.resolve()
  await until(() => watch.appends === 2)
  assert.is(held, bytesOf('dropped'))
  answers[1]?.reject(new AppError('bad_request', 'never'))
  await closed
  assert.is(held, 0)
  for (let n = 0; n < 10; n++) output.write({ source: 'stdout', text: 'x'.repeat(100_000) }, hold)
  assert.ok(held < 1 << 20, `${held} bytes`) // the lines beyond the cap are not kept
  await output.close()
  assert.is(held, 0)
})

output(
  'that cannot be stored at all does not keep the run from ending',
  async ({ output, store, run_id, watch }) => {
    watch.before = (append) =>
      append === 1 ? Promise.reject(new AppError('bad_request', 'never')) : Promise.resolve()
    output.write({ source: 'stdout', text: 'lost' })
    await output.close()
    output.write({ source: 'stdout', text: 'kept' })
    await output.close()
    assert.equal(await textsOf(store, run_id), ['kept'])
  },
)

output.run()
