import * as assert from 'uvu/assert'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../../src/adapters/embedded/readModels/index.ts'
import { adoptLog } from '../../../src/commands/installation/adoptLog.ts'
import { checkLog } from '../../../src/commands/installation/checkLog.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { isAppError } from '../../../src/errors.ts'
import { START } from '../../../src/events/event.ts'
import type { EventType } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { silent } from '../../../src/logger.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { failureOf } from '../../contracts/eventStore/facts.ts'
import { cursorOf } from '../../contracts/readModels/collection.ts'
import { exampleOf } from '../../events/examples.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'

const metadata = { env_id: 'env', correlation_id: 'c' }
const spec = { name: 'runs', version: 1, indexes: [] }

interface Context {
  deps: Parameters<typeof adoptLog>[0]
  /** Appends the example of a fact. */
  append(type: EventType, stream?: string): Promise<void>
  close(): Promise<void>
}

const log = suite<Context>('the check of the log at a start')

log.before.each(async (context) => {
  const store = openEventStore({ dir: tempDir() })
  const readModels = openReadModels({ dir: tempDir() })
  const blobs = await openBlobs({ dir: tempDir() })
  Object.assign(context, {
    deps: { store, readModels, blobs, aggregates: openAggregates(store), logger: silent },
    append: async (type: EventType, stream = newId()) =>
      void (await store.append(stream, [{ id: newId(), event: exampleOf[type], metadata }], 'none')),
    close: async () => {
      await store.close()
      await readModels.close()
      await blobs.close()
    },
  })
})
log.after.each(({ close }) => close())

const refusal = async (work: Promise<unknown>): Promise<string> => {
  const failure = await failureOf(work)
  if (isAppError(failure, 'bad_request')) return failure.message
  throw new Error('Expected a refusal', { cause: failure })
}
const acceptanceIn = (message: string): string => /SVC_ACCEPT_LOSS=(\w+)/.exec(message)?.[1] ?? 'none'

/** A founded log with read models whose checkpoint is three events beyond its end. */
const withLoss = async ({ deps, append }: Context): Promise<void> => {
  await append('InstallationFounded', streamOf.installation)
  await append('StreamCreated')
  assert.is(await checkLog(deps, null), null)
  await adoptLog(deps, null)
  const writer = await deps.readModels.writer(spec)
  await writer.write([{ id: 'a', doc: {}, cursor: cursorOf(5) }], cursorOf(5))
}

log('marks read models and blobs with the id of the log', async ({ deps, append }) => {
  await append('InstallationFounded', streamOf.installation)
  await adoptLog(deps, null)
  assert.equal(await deps.readModels.source(), { log_id: 'rk', checkpoint: null })
  assert.ok(await deps.blobs.head('log-id'))
  assert.is(await checkLog(deps, null), null)
})

log('reports the number of missing events, and changes nothing', async (context) => {
  await withLoss(context)
  const { deps } = context
  const [head, source] = [await deps.store.head(), await deps.readModels.source()]
  const message = await refusal(checkLog(deps, null))
  assert.match(
    message,
    'The end of the log is missing: the read models have at least 3 events that the log lacks',
  )
  assert.is(await refusal(checkLog(deps, '0123456789ab')), message)
  assert.equal([await deps.store.head(), await deps.readModels.source()], [head, source])
})

log('accepts this loss and no other: the log gets a new id, and the read models restart', async (context) => {
  await withLoss(context)
  const { deps } = context
  const acceptance = acceptanceIn(await refusal(checkLog(deps, null)))
  const accepted = await checkLog(deps, acceptance)
  await adoptLog(deps, accepted)
  const { log_id, checkpoint } = await deps.readModels.source()
  assert.is.not(log_id, 'rk')
  assert.is(checkpoint, null)
  assert.is(await checkLog(deps, null), null)
  await adoptLog(deps, accepted) // as a node does that had found the same loss
  assert.is((await deps.readModels.source()).log_id, log_id)
  await (await deps.readModels.writer(spec)).write([], cursorOf(9))
  assert.is.not(acceptanceIn(await refusal(checkLog(deps, acceptance))), acceptance)
})

log('builds read models again that are from before an accepted loss', async (context) => {
  await withLoss(context)
  const { deps } = context
  const accepted = await checkLog(deps, acceptanceIn(await refusal(checkLog(deps, null))))
  const died = new Error('the process died here')
  const readModels = Object.assign(Object.create(deps.readModels) as typeof deps.readModels, {
    source: () => deps.readModels.source(),
    restart: () => Promise.reject(died),
  })
  assert.is(await failureOf(adoptLog({ ...deps, readModels }, accepted)), died)
  assert.is(await checkLog(deps, null), null)
  await adoptLog(deps, null)
  assert.is((await deps.readModels.source()).checkpoint, null)
})

log('confirms a loss, because a read that was cut short looks like one', async (context) => {
  await withLoss(context)
  await (await context.deps.readModels.writer(spec)).write([], cursorOf(1))
  let cuts = 2
  const whole = context.deps.store
  const head = () => (cuts-- > 0 ? Promise.resolve('') : whole.head())
  const store: EventStore = forwarding(whole, { head })
  await context.append('EventPublished')
  await context.append('EventPublished')
  await context.append('EventPublished')
  assert.is(await checkLog({ ...context.deps, store }, null), null)
})

log('refuses an end that is lost also when the log is longer again', async (context) => {
  await withLoss(context)
  for (let facts = 0; facts < 10; facts++) await context.append('EventPublished')
  const { store } = context.deps
  assert.is(await checkLog(context.deps, null), null)
  const grown = forwarding(store, { canHaveHad: async (cursor) => cursor !== cursorOf(5) })
  assert.match(
    await refusal(checkLog({ ...context.deps, store: grown }, null)),
    'The end of the log is missing: the read models have events that the log lacks (read models of log rk',
  )
})

log('finds no loss in what other nodes append and project during the check', async ({ deps, append }) => {
  await append('InstallationFounded', streamOf.installation)
  await adoptLog(deps, null)
  const writer = await deps.readModels.writer(spec)
  const whole = deps.store
  const head = async () => {
    const found = await whole.head()
    await append('StreamCreated')
    await writer.write([], await whole.head())
    return found
  }
  const store = forwarding(whole, { head, remembered: async () => START })
  assert.is(await checkLog({ ...deps, store }, null), null)
})

log('refuses empty blobs beside a log of 0.1.0 that stored some', async ({ deps, append }) => {
  await append('OrgCreated')
  assert.is(await checkLog(deps, null), null)
  await append('BuildUploaded')
  assert.match(await refusal(checkLog(deps, null)), 'SVC_BLOBS: the blobs do not belong to this log')
  await deps.blobs.put('builds/a', Buffer.from('zip'))
  assert.is(await checkLog(deps, null), null)
})
log.run()
