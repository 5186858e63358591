import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import type { NewEvent } from '../../src/events/event.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { Doc, ReadModels } from '../../src/ports/readModels.ts'
import { Projector } from '../../src/projections/projector.ts'
import { runs } from '../../src/projections/runs.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { tempDir } from '../support/tempDir.ts'
import { projecting, withWriter } from './projectedNames.ts'
import { runFacts } from './runFacts.ts'

const spec = runs

/** Appends facts of runs, of which some go on for several appends. */
const appendRuns = async (append: (n: number, facts: readonly NewEvent[]) => Promise<unknown>) => {
  const random = randomOf(SEED)
  const waiting: { readonly due: number; readonly fact: NewEvent }[] = []
  for (let n = 0; n < 60; n++) {
    const start = new Date(Date.parse('2026-05-01T10:00:00.000Z') + n * 7000).toISOString()
    const run = runFacts({ run_id: `r${String(n).padStart(3, '0')}`, start, fn: `orders/f${random(2)}` })
    if (random(4) === 0) {
      const failedAt = n + 1 + random(4)
      waiting.push({ due: failedAt, fact: run.failed(random(5000), start) })
      waiting.push({ due: failedAt + 1 + random(3), fact: run.retried() })
    } else waiting.push({ due: n + random(5), fact: run.succeeded(random(5000)) })
    const due = waiting.filter((each) => each.due <= n)
    for (const each of due) waiting.splice(waiting.indexOf(each), 1)
    await append(n, [run.started, ...due.map(({ fact }) => fact)])
  }
}

const dump = async (readModels: ReadModels): Promise<Doc[]> =>
  (await Array.fromAsync(readModels.reader(runs).scan())).sort((a, b) =>
    String(a['summary_id'] ?? a['run_id']) < String(b['summary_id'] ?? b['run_id']) ? -1 : 1,
  )

const summaries = projecting(`summaries of documents (SVC_TEST_SEED=${SEED})`)

const aloneOn = async (store: EventStore, signal: AbortSignal): Promise<Doc[]> => {
  const readModels = openReadModels({ dir: tempDir() })
  try {
    const projector = new Projector(spec, { readModels, store })
    void projector.run(signal)
    await projector.reach(await store.head())
    return await dump(readModels)
  } finally {
    await readModels.close()
  }
}

summaries('are the same when batches are repeated from any position', async (context) => {
  const { store, readModels, stopping } = context
  const cursors: string[] = ['']
  await appendRuns(async (n, facts) => cursors.push((await store.append(`a${n}`, facts, 'none')).cursor))
  const expected = await aloneOn(store, stopping.signal)
  assert.ok(expected.some((doc) => 'summary_id' in doc))
  for (const from of ['', ...cursors.filter((_, n) => n % 7 === 3)]) {
    // A crash between the documents and the checkpoint leaves documents that are ahead of it.
    const behind = withWriter(readModels, ({ checkpoint }) => ({
      checkpoint: async () => ((await checkpoint()) === null ? null : from),
    }))
    const stop = new AbortController()
    const projector = new Projector(spec, { readModels: behind, store })
    const running = projector.run(AbortSignal.any([stop.signal, stopping.signal]))
    await projector.reach(await store.head())
    stop.abort()
    await running
    assert.equal(await dump(readModels), expected, `after ${from || 'the start'}`)
  }
})

summaries('are the same when the projector dies after a part of a batch is stored', async (context) => {
  const { store, readModels, stopping } = context
  const random = randomOf(SEED)
  /** Stores the summaries, or all of them and a part of the documents, then fails. */
  const dying = withWriter(readModels, (collection) => ({
    write: async (writes, checkpoint, options) => {
      if (random(3) > 0) return collection.write(writes, checkpoint, options)
      const { summaries: all = [] } = options ?? {}
      const stored = [...all, ...writes].slice(0, random(all.length + writes.length + 1))
      await collection.write(stored, '')
      throw new AppError('unavailable', 'the process ends here')
    },
  }))
  const stop = new AbortController()
  const projector = new Projector(spec, { readModels: dying, store, lingerMs: () => 0 })
  const again = async (): Promise<void> => {
    while (!stop.signal.aborted)
      await projector.run(AbortSignal.any([stop.signal, stopping.signal])).catch(() => {})
  }
  const running = again()
  await appendRuns(async (n, facts) => {
    await store.append(`a${n}`, facts, 'none')
    await projector.reach(await store.head())
  })
  stop.abort()
  await running
  assert.equal(await dump(readModels), await aloneOn(store, stopping.signal))
})

summaries('are the same when two projectors of a collection overlap', async (context) => {
  const { store, readModels, stopping } = context
  const random = randomOf(SEED)
  const slowly = (): ReadModels =>
    withWriter(readModels, (collection) => ({
      stored: async (ids) => {
        const stored = await collection.stored(ids)
        for (let turns = random(6); turns > 0; turns--) await new Promise(setImmediate)
        return stored
      },
      write: async (writes, checkpoint, options) => {
        for (let turns = random(6); turns > 0; turns--) await new Promise(setImmediate)
        await collection.write(writes, checkpoint, options)
      },
    }))
  const twins = [0, 1, 2].map(() => new Projector(spec, { readModels: slowly(), store, lingerMs: () => 0 }))
  for (const twin of twins) void twin.run(stopping.signal)
  await appendRuns(async (n, facts) => {
    await store.append(`a${n}`, facts, 'none')
    if (random(3) === 0) await twins[random(3)]?.reach(await store.head())
  })
  await Promise.all(twins.map(async (twin) => twin.reach(await store.head())))
  assert.equal(await dump(readModels), await aloneOn(store, stopping.signal))
})
summaries.run()
