import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { AppError } from '../../src/errors.ts'
import { type NewEvent, START } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { Projector } from '../../src/projections/projector.ts'
import { type RunDoc, runs } from '../../src/projections/runs.ts'
import { engineUrl } from '../support/engines.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { tempDir } from '../support/tempDir.ts'
import { projecting, withWriter } from './projectedNames.ts'
import { runFacts } from './runFacts.ts'

/** Runs of three days, of which retention removes two in the middle of the log. */
const appendRuns = async (store: EventStore, count: number): Promise<void> => {
  const random = randomOf(SEED)
  const expired: NewEvent = {
    id: newId(),
    event: { type: 'CallsExpired', env_id: 'env', before: '2099-01-01' },
    metadata: { env_id: 'env', correlation_id: 'c' },
  }
  let open: ReturnType<typeof runFacts>[] = []
  for (let n = 0; n < count; n++) {
    const start = new Date(Date.parse('2026-05-01T10:00:00.000Z') + n * 20_000).toISOString()
    const run = runFacts({ run_id: `r${n}`, start, run_type: random(2) === 0 ? 'event' : 'call' })
    open.push(run)
    const ends = open.filter(() => random(3) === 0)
    open = open.filter((each) => !ends.includes(each))
    const facts = [run.started, ...ends.map((each) => (random(3) === 0 ? each.failed(9) : each.succeeded(5)))]
    await store.append(`a${n}`, n === Math.floor(count / 2) ? [...facts, expired] : facts, 'none')
  }
}

/** Each total of a list is the number of its documents. */
const checkTotals = async (readModels: ReadModels): Promise<number> => {
  const reader = readModels.reader<RunDoc>(runs)
  const docs = (await Array.fromAsync(reader.scan())).filter(({ run_id }) => run_id !== undefined)
  for (const status of [undefined, 'running', 'succeeded', 'failed'] as const)
    for (const run_type of [undefined, 'event', 'call'] as const) {
      const equal = { env_id: 'env', ...(status && { status }), ...(run_type && { run_type }) }
      const { total } = await reader.find({ equal, sort: 'order', limit: 0, offset: 0 })
      const expected = docs.filter(
        (doc) => (!status || doc.status === status) && (!run_type || doc.run_type === run_type),
      )
      assert.is(total, expected.length, JSON.stringify(equal))
    }
  return docs.length
}

const totals = projecting(`totals of lists (SVC_TEST_SEED=${SEED})`)

/** Three projectors whose writes are cut: after the summaries, or after a part of the documents. */
const check = async (
  { store, stopping }: { store: EventStore; stopping: AbortController },
  readModels: ReadModels,
  count: number,
): Promise<void> => {
  const random = randomOf(SEED)
  await appendRuns(store, count)
  const cut = (): ReadModels =>
    withWriter(readModels, (collection) => ({
      write: async (writes, checkpoint, options) => {
        if (random(2) === 0) return collection.write(writes, checkpoint, options)
        await collection.write(writes.slice(0, random(writes.length + 1)), START, options)
        throw new AppError('unavailable', 'the process ends here')
      },
    }))
  const projectors = Array.from({ length: 3 }, () => new Projector(runs, { readModels: cut(), store }))
  const stop = new AbortController()
  const until = AbortSignal.any([stop.signal, stopping.signal])
  const running = projectors.map(async (projector) => {
    while (!until.aborted) await projector.run(until).catch(() => {})
  })
  const head = await store.head()
  await Promise.all(projectors.map((projector) => projector.reach(head, until)))
  stop.abort()
  await Promise.all(running)
  const left = await checkTotals(readModels)
  assert.ok(left > 0 && left < count, `${left} of ${count} runs`)
}

totals('are exact on the embedded engine, whatever happens to projectors', async (context) => {
  const readModels = openReadModels({ dir: tempDir() })
  try {
    await check(context, readModels, 400)
  } finally {
    await readModels.close()
  }
})

const server = engineUrl('mongodb')
if (server)
  totals('are exact on MongoDB, whatever happens to projectors', async (context) => {
    const url = server.replace(
      /^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/,
      `$1/svc_test_${newId().slice(-12)}`,
    )
    const readModels = await openMongoReadModels({ url })
    try {
      await check(context, readModels, 250)
    } finally {
      await readModels.close()
    }
  })
else process.stdout.write('[MongoDB was not exercised: set SVC_TEST_MONGODB]')

totals.run()
