import * as assert from 'uvu/assert'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { checkUnused, restoreFacts, unhandledIn } from '../../../src/commands/installation/restoreFacts.ts'
import { AppError, isAppError } from '../../../src/errors.ts'
import type { NewEvent, Recorded } from '../../../src/events/event.ts'
import type { DomainEvent } from '../../../src/events/index.ts'
import { Unhandled } from '../../../src/events/unhandled.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { exampleOf } from '../../events/examples.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'

const factOf = (event: DomainEvent): NewEvent => ({
  id: newId(),
  event,
  metadata: { env_id: 'env', correlation_id: 'c', v: 1 },
})
const published = (event_id: string): DomainEvent => ({ ...exampleOf.EventPublished, event_id })
const handled = (event_id: string): DomainEvent => ({ ...exampleOf.EventHandled, event_id })

async function* factsIn(store: EventStore): AsyncGenerator<Recorded> {
  for await (const { events, caughtUp } of store.subscribe({ signal: new AbortController().signal })) {
    yield* events
    if (caughtUp) return
  }
}

/** What must be equal in both logs: everything but positions and what marks a restored fact. */
const kept = async (store: EventStore, without: readonly string[] = []) =>
  (await Array.fromAsync(factsIn(store)))
    .filter(({ stream }) => !without.includes(stream))
    .map(({ id, stream, revision, at, event }) => [id, stream, revision, at, event])

const source = openEventStore({ dir: tempDir() })
await source.append('installation', [factOf(exampleOf.InstallationFounded)], 'none')
await source.append('stream-a', [factOf(published('taken')), factOf(handled('taken'))], 'none')
await source.append('stream-b', [factOf(published('open'))], 'none')
await source.append(
  'file-a',
  Array.from({ length: 30 }, () => factOf(exampleOf.FileStored)),
  'none',
)
await source.append('stream-cut', [factOf(published('expired'))], 'none')
await source.expire('stream-cut', 0)
await until(() => source.isExpired('stream-cut'))
const awake = setInterval(() => {}, 1000) // the pauses of a scavenge keep no process running
await source.scavenge?.()
clearInterval(awake)
await source.expire('stream-cut', null)
await source.append('stream-cut', [factOf(handled('expired'))], 0)

const restoreInto = async (store: EventStore): Promise<number> => {
  const unhandled = await unhandledIn(factsIn(source))
  return restoreFacts(factsIn(source), { store, unhandled, backend: 's3', onRestored: () => {} })
}

const restore = suite<{ store: EventStore }>('the restore of a log into another event store')
restore.before.each((context) => {
  context.store = openEventStore({ dir: tempDir() })
})

restore('keeps ids, streams, revisions and times, in the same order', async ({ store }) => {
  await restoreInto(store)
  const before = (await kept(source, ['stream-cut', 'installation'])).map((fact) =>
    JSON.stringify(fact).replaceAll('"storage_backend":"disk"', '"storage_backend":"s3"'),
  )
  assert.equal(
    (await kept(store, ['stream-cut', 'installation'])).map((fact) => JSON.stringify(fact)),
    before,
  )
})

restore('stores the installation last, so that no node uses a part', async ({ store }) => {
  await restoreInto(store)
  assert.is((await kept(store)).at(-1)?.[1], 'installation')
})

restore('marks only what no worker had taken', async ({ store }) => {
  await restoreInto(store)
  const marked = (await Array.fromAsync(factsIn(store))).filter(({ metadata }) => metadata.unhandled === true)
  assert.equal(
    marked.map(({ event }) => 'event_id' in event && event.event_id),
    ['open'],
  )
})

restore('keeps the revisions of a stream whose beginning has expired', async ({ store }) => {
  assert.is(await restoreInto(store), (await kept(source)).length)
  const facts = await Array.fromAsync(store.read('stream-cut'))
  assert.equal(
    facts.map(({ revision, event }) => [revision, event.type]),
    [
      [0, 'FactExpired'],
      [1, 'EventHandled'],
    ],
  )
  const [expired, left] = facts
  assert.is(expired?.metadata.env_id, 'env', 'its retention is that of the environment')
  assert.is(expired?.at, left?.at, 'it expires with the first fact that is left')
})

restore('continues within the expired facts of a stream', async ({ store }) => {
  const long = openEventStore({ dir: tempDir() })
  const published = () => factOf(exampleOf.EventPublished)
  await long.append('stream-long', Array.from({ length: 1200 }, published), 'none')
  await long.expire('stream-long', 0)
  await until(() => long.isExpired('stream-long'))
  await long.scavenge?.()
  await long.expire('stream-long', null)
  await long.append('stream-long', [published()], 1199)
  let appends = 0
  const failing = forwarding(store, {
    append: (...args) =>
      ++appends === 3 ? Promise.reject(new AppError('unavailable', 'gone')) : store.append(...args),
  })
  const into = (to: EventStore) =>
    restoreFacts(factsIn(long), {
      store: to,
      unhandled: new Unhandled(),
      backend: 's3',
      onRestored: () => {},
    })
  const error = await into(failing).catch((thrown: unknown) => thrown)
  assert.ok(isAppError(error, 'unavailable'))
  assert.is((await Array.fromAsync(store.read('stream-long'))).length, 500)
  assert.is(await into(store), 1)
  const facts = await Array.fromAsync(store.read('stream-long'))
  assert.equal(
    facts.map(({ revision }) => revision),
    facts.map((_, n) => n),
  )
  assert.is(new Set(facts.map(({ id }) => id)).size, 1201)
  assert.equal(
    facts.filter(({ event }) => event.type !== 'FactExpired').map(({ revision }) => revision),
    [1200],
  )
  await long.close()
})

restore('changes nothing when it is repeated', async ({ store }) => {
  await restoreInto(store)
  const before = await kept(store)
  await restoreInto(store)
  assert.equal(await kept(store), before)
})

restore('refuses a store with other facts of a stream, or with an installation', async ({ store }) => {
  await checkUnused(store)
  await store.append('stream-b', [factOf(published('other'))], 'none')
  const error = await restoreInto(store).catch((thrown: unknown) => thrown)
  assert.ok(isAppError(error, 'conflict'))
  assert.match((error as Error).message, 'SVC_EVENT_STORE: it contains other facts of stream-b')
  const used = await checkUnused(source).catch(String)
  assert.match(String(used), 'SVC_EVENT_STORE: it contains an installation')
})

restore('refuses a fact of a later version before it writes anything', async () => {
  const later = async function* (): AsyncGenerator<Recorded> {
    for await (const fact of factsIn(source)) yield { ...fact, unreadable: 'this build knows no such type' }
  }
  const error = await unhandledIn(later()).catch(String)
  assert.match(String(error), /InstallationFounded v1, .*: this build knows no such type; upgrade svc/)
})

restore.run()
