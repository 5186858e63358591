import * as assert from 'uvu/assert'
import { Past, type PastDeps } from '../../../src/commands/audit/past.ts'
import { runThen } from '../../../src/commands/audit/pastRuns.ts'
import { isAppError, messageOf } from '../../../src/errors.ts'
import type { Recorded } from '../../../src/events/event.ts'
import type { DomainEvent } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { serviceKeys } from '../../../src/projections/issued.ts'
import { evolveRun, type RunDoc } from '../../../src/projections/runs.ts'
import { exampleOf } from '../../events/examples.ts'
import { recorded } from '../../projections/recorded.ts'
import { suite } from '../../support/suite.ts'

const LARGE = 'x'.repeat(60_000)

/** A past of streams with these facts. */
const pastOf = (streams: Readonly<Record<string, readonly Recorded[]>>): Past => {
  const read = async function* (stream: string) {
    yield* streams[stream] ?? []
  }
  const deps = { store: { read }, views: {} } as unknown as PastDeps
  return new Past(deps, { position: '9'.repeat(16) })
}

const keys = (count: number): DomainEvent[] =>
  Array.from({ length: count }, (_, n) => ({
    ...exampleOf.ServiceKeyCreated,
    service_key_id: String(n),
    metadata: LARGE,
  }))

const past = suite('the memory of a past state')

past('is limited by the size of its documents', async () => {
  const stream = streamOf.issued('k')
  const few = await pastOf({ [stream]: recorded(keys(100)) }).issued(serviceKeys, 'k')
  assert.is(few.length, 100)
  const many = pastOf({ [stream]: recorded(keys(150)) }).issued(serviceKeys, 'k')
  const failure = await many.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(isAppError(failure, 'bad_request'))
  assert.match(messageOf(failure), /^as_of: this past state takes more than 8 MiB of facts to fold/)
})

past('of a run does not contain the other runs of its stream', async () => {
  const others = Array.from({ length: 150 }, (_, n): DomainEvent[] => [
    { ...exampleOf.RunStarted, run_id: String(n) },
    { ...exampleOf.RunSucceeded, run_id: String(n), result: LARGE },
  ]).flat()
  const facts = recorded([exampleOf.RunStarted, ...others, exampleOf.RunSucceeded])
  const doc = facts.reduce<RunDoc | null>(
    (doc, fact) =>
      'run_id' in fact.event && fact.event.run_id === exampleOf.RunStarted.run_id
        ? evolveRun(doc, fact)
        : doc,
    null,
  )
  assert.ok(doc)
  const then = await runThen(pastOf({ [streamOf.stream(doc.stream_id)]: facts }), doc)
  assert.equal(then, doc)
})

past('of a run whose facts have expired is its present state, as in a list', async () => {
  const [fact] = recorded([exampleOf.RunStarted])
  const doc = fact && evolveRun(null, fact)
  assert.ok(doc)
  assert.equal(await runThen(pastOf({}), doc), doc)
})

const lists = suite('a past list of very many projects')

lists('reads the streams of its page only, and leaves out those that were deleted by then', async () => {
  const [created, deleted] = [3000, 500]
  const facts = recorded([
    ...Array.from({ length: created }, (_, n): DomainEvent => ({
      ...exampleOf.ProjectCreated,
      project_id: String(n),
      name: `p${n}`,
    })),
    ...Array.from({ length: deleted }, (_, n): DomainEvent => ({
      ...exampleOf.ProjectDeleted,
      project_id: String(n * 2),
    })),
  ]).map((fact) => ({
    ...fact,
    stream: `project-${'project_id' in fact.event ? fact.event.project_id : ''}`,
  }))
  const read: string[] = []
  const store = {
    read: async function* (stream: string) {
      read.push(stream)
      yield* facts.filter((fact) => fact.stream === stream)
    },
  }
  const docs = facts.map(({ cursor, stream, at, event }) => ({
    position: cursor,
    stream,
    at,
    type: event.type,
  }))
  const find = ({ equal, from = '', limit }: { equal: { type: string }; from?: string; limit: number }) => {
    const items = docs.filter(({ type, position }) => type === equal.type && position >= from)
    return Promise.resolve({ items: items.slice(0, limit) })
  }
  const views = { settled: () => Promise.resolve(), audit: { find } }
  const atThe = (position: string) => new Past({ store, views } as unknown as PastDeps, { position })

  const end = atThe(facts.at(-1)?.cursor ?? '')
  const newest = await end.projectPage('env', { limit: 100, offset: 0 })
  assert.is(newest.total, created - deleted)
  assert.equal(
    newest.docs.map(({ name }) => name),
    Array.from({ length: 100 }, (_, n) => `p${created - 1 - n}`),
  )
  assert.is(read.length, 100)
  const oldest = await end.projectPage('env', { limit: 100, offset: created - deleted - 2 })
  assert.equal(
    oldest.docs.map(({ name }) => name),
    ['p3', 'p1'],
  )
  const before = await atThe(facts[created - 1]?.cursor ?? '').projectPage('env', { limit: 1, offset: 2999 })
  assert.equal([before.total, before.docs[0]?.name], [created, 'p0'])
})

past.run()
lists.run()
