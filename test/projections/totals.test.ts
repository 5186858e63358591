import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
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

const KILLS = 12

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

const totals = projecting(`totals of lists (SVC_TEST_SEED=${SEED})`, 120_000)

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

const buildOnServer = fileURLToPath(new URL('./buildOnServer.ts', import.meta.url))

/** The documents of runs and their statistics, without those that were removed. */
const docsIn = async (readModels: ReadModels): Promise<string[]> =>
  (await Array.fromAsync(readModels.reader(runs).scan())).map((doc) => JSON.stringify(doc)).sort()

/** The documents that a projector without a crash builds. */
const uninterrupted = async (store: EventStore): Promise<string[]> => {
  const readModels = openReadModels({ dir: tempDir() })
  const stop = new AbortController()
  const projector = new Projector(runs, { readModels, store })
  const running = projector.run(stop.signal)
  await projector.reach(await store.head())
  stop.abort()
  await running
  const docs = await docsIn(readModels)
  await readModels.close()
  return docs
}

const server = engineUrl('mongodb')
if (server) {
  const newUrl = () =>
    server.replace(/^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/svc_test_${newId().slice(-12)}`)
  totals('are exact on MongoDB, whatever happens to projectors', async (context) => {
    const readModels = await openMongoReadModels({ url: newUrl() })
    try {
      await check(context, readModels, 250)
    } finally {
      await readModels.close()
    }
  })

  totals('are exact on MongoDB, at whatever command a process that builds them is killed', async () => {
    const random = randomOf(SEED)
    const [dir, url] = [tempDir(), newUrl()]
    const store = openEventStore({ dir })
    await appendRuns(store, 400)
    const expected = await uninterrupted(store)
    await store.close()
    const build = async (...killedAt: string[]): Promise<unknown> => {
      const child = spawn(process.execPath, [buildOnServer, dir, url, ...killedAt], { stdio: 'inherit' })
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
      return signal ?? code
    }
    assert.is(await build('30'), 'SIGKILL')
    for (let n = 0; n < KILLS; n++) await build(String(30 + random(60)))
    assert.is(await build(), 0)
    const readModels = await openMongoReadModels({ url })
    try {
      await checkTotals(readModels)
      assert.equal(await docsIn(readModels), expected)
    } finally {
      await readModels.close()
    }
  })
} else process.stdout.write('[MongoDB was not exercised: set SVC_TEST_MONGODB]')

totals.run()
