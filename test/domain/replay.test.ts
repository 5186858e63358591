import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import type { Recorded } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { REDACTED } from '../../src/events/redact.ts'
import { streamOf } from '../../src/events/streams.ts'
import { changesBetween, type Plain, plainOf } from '../../src/domain/plainState.ts'
import { Replay } from '../../src/domain/replay.ts'
import { exampleOf } from '../events/examples.ts'
import { suite } from '../support/suite.ts'

const facts = (...events: readonly DomainEvent[]): Recorded[] =>
  events.map((event, revision) => ({
    id: String(revision),
    stream: 's',
    revision,
    cursor: String(revision),
    at: '2026-05-01T10:00:00.000Z',
    event,
    metadata: { env_id: 'env', correlation_id: 'c' },
  }))
const replayed = (stream: string, ...events: readonly DomainEvent[]) => {
  const replay = Replay.of(stream)
  if (!replay) throw new Error(`Expected ${stream} to be a stream`)
  return facts(...events).map((fact) => replay.step(fact))
}

const plain = suite('a plain state')

plain('has objects for maps and lists for sets', () =>
  assert.equal(plainOf({ a: new Map([['x', new Set([1, 2])]]), b: undefined, c: Infinity, d: null }), {
    a: { x: [1, 2] },
    c: null,
    d: null,
  }),
)

plain('differs from another one by the fields that were added, changed and removed', () => {
  const before = { name: 'a', map: { x: 1, y: 2 }, list: [1], same: { deep: true } }
  const after = { name: 'b', map: { y: 3, z: 4 }, list: [1, 2], same: { deep: true } }
  assert.equal(changesBetween(before, after), {
    name: { before: 'a', after: 'b' },
    'map.x': { before: 1 },
    'map.y': { before: 2, after: 3 },
    'map.z': { after: 4 },
    list: { before: [1], after: [1, 2] },
  })
  assert.equal(changesBetween(after, after), {})
})

plain('differs by fields that have the name of an inherited one', () => {
  const named = JSON.parse('{"__proto__": {"a": 1}, "constructor": "b", "toString": {"c": 2}}') as Plain
  const added = changesBetween({}, named)
  assert.equal(Object.entries(added), [
    ['__proto__', { after: { a: 1 } }],
    ['constructor', { after: 'b' }],
    ['toString', { after: { c: 2 } }],
  ])
  assert.equal(Object.entries(changesBetween(named, {})), [
    ['__proto__', { before: { a: 1 } }],
    ['constructor', { before: 'b' }],
    ['toString', { before: { c: 2 } }],
  ])
})

plain('that is no object differs as a whole', () =>
  assert.equal(changesBetween('alive', 'gone'), { '': { before: 'alive', after: 'gone' } }),
)
plain.run()

const replay = suite('a replayed stream')

replay('shows what each fact changed, and the state after it', () => {
  const [created, renamed] = replayed('project-p', exampleOf.ProjectCreated, exampleOf.ProjectRenamed)
  assert.equal(created?.changes['name'], { after: 'shop' })
  assert.equal(renamed?.changes, {
    name: { before: 'shop', after: 'store' },
    nameFence: { before: 0, after: 1 },
  })
  assert.match(JSON.stringify(renamed?.state), '"name":"store"')
})

replay('keeps earlier states, although a fold changes its state in place', () => {
  const [first, second] = replayed('issued-k', exampleOf.SessionCreated, exampleOf.SessionsEnded)
  assert.equal(first?.changes, { 'sessions.se': { after: Date.parse('2026-05-01T10:00:00.000Z') } })
  assert.equal(second?.changes, {
    'sessions.se': { before: Date.parse('2026-05-01T10:00:00.000Z') },
  })
})

replay('folds facts that are not shown', () => {
  const project = Replay.of('project-p')
  assert.ok(project)
  const [created, renamed] = facts(exampleOf.ProjectCreated, exampleOf.ProjectRenamed) as [Recorded, Recorded]
  project.skip(created)
  assert.equal(project.step(renamed).changes['name'], { before: 'shop', after: 'store' })
})

replay('contains no secret, because its facts are redacted first', () => {
  const [founded] = replayed('installation', exampleOf.InstallationFounded)
  const current = { id: REDACTED, canary: REDACTED }
  assert.match(JSON.stringify(founded?.state), `"current":${JSON.stringify(current)}`)
  const [claimed] = replayed('idem-h', exampleOf.RequestClaimed)
  assert.match(JSON.stringify(claimed?.state), `"fingerprint":"${REDACTED}"`)
})

replay('is refused for a name that no stream has', () => {
  assert.is(Replay.of('nothing-p'), null)
  assert.is(Replay.of('constructor-p'), null)
})

replay('exists for every kind of stream that the service writes', () => {
  const web = { method: 'POST', service: 's', path: '/' }
  for (const [kind, of] of Object.entries(streamOf)) {
    if (kind === 'orgSlug') continue // of no version
    const stream =
      typeof of === 'string'
        ? of
        : (of as (...args: unknown[]) => string)('a', kind === 'webhook' ? web : 'b')
    assert.ok(Replay.of(stream), stream)
  }
})

replay('refuses a fact of another kind of stream', () =>
  assert.throws(
    () => replayed('project-p', exampleOf.OrgCreated),
    (error: unknown) => error instanceof AppError,
  ),
)
replay.run()
