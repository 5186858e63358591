import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import type { Batch } from '../../src/ports/eventStore.ts'
import { Projector } from '../../src/projections/projector.ts'
import { readAhead } from '../../src/projections/readAhead.ts'
import { until } from '../support/until.ts'
import { any, dump, forward, life, newEvents, projecting, withWriter } from './projectedNames.ts'

const ahead = projecting('the next batch of a projector')

const batch = (cursor: string, caughtUp = false): Batch => ({ events: [], cursor, caughtUp })

const refusal = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )

/** Batches that note which of them were read. */
const noting = (batches: readonly (Batch | Error)[]) => {
  const read: string[] = []
  const generator = async function* (): AsyncGenerator<Batch> {
    for (const each of batches) {
      if (each instanceof Error) throw each
      read.push(each.cursor)
      yield each
    }
  }
  return { read, batches: readAhead(generator()) }
}

ahead('is read while the one before is in use, and no further one', async () => {
  const { read, batches } = noting([batch('1'), batch('2'), batch('3')])
  assert.is((await batches.next()).value?.cursor, '1')
  await nextTurn()
  assert.equal(read, ['1', '2'])
  assert.is((await batches.next()).value?.cursor, '2')
  await nextTurn()
  assert.equal(read, ['1', '2', '3'])
})

ahead('is not read at the end of the log, where it grows', async () => {
  const { read, batches } = noting([batch('1', true), batch('2', true)])
  await batches.next()
  await nextTurn()
  assert.equal(read, ['1'])
  assert.is((await batches.next()).value?.cursor, '2')
  assert.ok((await batches.next()).done)
})

ahead('fails after the one before', async () => {
  const { batches } = noting([batch('1'), new Error('This fact is unreadable')])
  assert.is((await batches.next()).value?.cursor, '1')
  await nextTurn()
  assert.match(String(await refusal(batches.next())), 'This fact is unreadable')
})

ahead('does not hold up the error of a caller', async () => {
  const never = async function* (): AsyncGenerator<Batch> {
    yield batch('1')
    await new Promise(() => {})
  }
  const failing = async () => {
    for await (const { cursor } of readAhead(never())) throw new Error(`no place for ${cursor}`)
  }
  assert.match(String(await refusal(failing())), 'no place for 1')
})

ahead(
  'is read while a server stores the one before, and contains more pages',
  async ({ store, readModels, run }) => {
    const { cursor } = await store.append('p', newEvents(life('p', 39)), 'none')
    let pages = 0
    const pageByPage = forward(store, async function* ({ signal, ...options }) {
      const events = await Array.fromAsync(store.read('p'))
      for (const recorded of events) {
        pages++
        yield { events: [recorded], cursor: recorded.cursor, caughtUp: pages === events.length }
      }
      yield* store.subscribe({ ...options, signal, after: cursor })
    })
    const stored = Promise.withResolvers<void>()
    const seen: number[] = []
    const remote = withWriter(readModels, ({ write }) => ({
      isRemote: true,
      async write(documents, checkpoint, options) {
        seen.push(
          (await Array.fromAsync(store.read('p'))).findIndex((each) => each.cursor === checkpoint) + 1,
        )
        await stored.promise
        return write(documents, checkpoint, options)
      },
    }))
    const projector = new Projector(any, { readModels: remote, store: pageByPage })
    void run(projector)
    await until(() => pages === 16 && seen.length > 0)
    assert.equal(seen, [8])
    stored.resolve()
    await projector.reach(cursor)
    assert.equal(seen, [8, 16, 24, 32, 40])
    assert.is((await dump(readModels))[0]?.['renamed'], 39)
  },
)

ahead.run()
