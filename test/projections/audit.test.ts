import * as assert from 'uvu/assert'
import type { Metadata, Recorded } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { REDACTED } from '../../src/events/redact.ts'
import { audit, type AuditDoc, auditLinks } from '../../src/projections/audit.ts'
import { exampleOf } from '../events/examples.ts'
import { docsOf } from '../support/docsOf.ts'
import { suite } from '../support/suite.ts'
import { at, beginsWith, order, recorded } from './recorded.ts'

const by = (metadata: Partial<Metadata>, ...events: readonly DomainEvent[]): Recorded[] =>
  recorded(events).map((fact) => ({ ...fact, metadata: { ...fact.metadata, ...metadata } }))
const docsAfter = (facts: readonly Recorded[]): AuditDoc[] => [...docsOf(audit, facts).values()]
const key: Partial<Metadata> = { actor: 'k', actor_type: 'api-key', ip: '10.0.0.1' }

const documents = suite('the audit of a fact')

documents('has the fact without its secrets', () => {
  const [fact] = docsAfter(by(key, exampleOf.ContextVariableUpdated))
  assert.equal(fact, {
    position: '0000000000000001',
    env_id: 'env',
    type: 'ContextVariableUpdated',
    stream: 's',
    at: at(0),
    first_at: null,
    actor: 'k',
    actor_type: 'api-key',
    ip: '10.0.0.1',
    request_id: 'c',
    data: { project_id: 'p', key: 'API_KEY', description: '', sealed: REDACTED },
    order: order(0),
    expiring: null,
  })
})

documents('is found by each id and name in it', () => {
  const links = docsOf(auditLinks, by(key, exampleOf.ContextVariableUpdated))
  const link = {
    position: '0000000000000001',
    env_id: 'env',
    type: 'ContextVariableUpdated',
    stream: 's',
    actor: 'k',
    expiring: null,
  }
  assert.equal(
    [...links.values()],
    ['p', 'API_KEY'].map((resource) => ({ resource, ...link })),
  )
})

documents('names the service as its actor, and no request, for a fact of its own', () => {
  const [fact] = docsAfter(by({ actor: 'retention', actor_type: 'system' }, exampleOf.EnvPurged))
  assert.equal(
    [fact?.actor, fact?.actor_type, fact?.ip, fact?.request_id],
    ['retention', 'system', null, null],
  )
})

documents('recognizes facts of svc 0.1.0, which did not have the kind of their actor', () => {
  const [byOperator] = docsAfter(by({ actor: 'operator' }, exampleOf.OrgChanged))
  assert.equal([byOperator?.actor_type, byOperator?.request_id], ['operator', 'c'])
  const [byKey] = docsAfter(by({ actor: 'k' }, exampleOf.ProjectRenamed))
  assert.equal([byKey?.actor, byKey?.actor_type, byKey?.request_id], ['k', null, 'c'])
  const [byNone] = docsAfter(by({}, exampleOf.ProjectRenamed))
  assert.equal([byNone?.actor, byNone?.request_id], ['', null])
})

documents('does not exist for a fact that is no change', () =>
  assert.equal(
    docsAfter(by(key, exampleOf.EventPublished, exampleOf.RunSucceeded, exampleOf.NameReserved)),
    [],
  ),
)

documents('of an imported fact has the time of the import, beside that of the other installation', () => {
  const run: Partial<Metadata> = { actor: 'r', actor_type: 'run' }
  const times = { first_at: at(0), imported_at: '2026-07-01T00:00:00.000Z' }
  const [fact] = docsAfter(by({ ...run, ...times }, exampleOf.FileStored))
  assert.equal([fact?.at, fact?.first_at], [times.imported_at, at(0)])
  assert.is(fact?.order, `${times.imported_at}/${fact?.position}`)
  assert.is(fact?.expiring, order(0), 'removed by the time of the run')
})

documents('contains an event that the operator published again, and no other event', () => {
  assert.is(docsAfter(by({ actor: 'operator', actor_type: 'operator' }, exampleOf.EventPublished)).length, 1)
  assert.is(docsAfter(by({ actor: 'r', actor_type: 'run' }, exampleOf.EventPublished)).length, 0)
})

documents('of a run is removed with the runs of its time; that of a client remains', () => {
  const run: Partial<Metadata> = { actor: 'r', actor_type: 'run' }
  const [stored, other] = [by(run, exampleOf.FileStored), by(key, exampleOf.FileStored)]
  assert.is(docsAfter(stored)[0]?.expiring, order(0))
  assert.is(docsAfter(other)[0]?.expiring, null)
  const expired = exampleOf.CallsExpired
  assert.equal(audit.clears?.(by({}, { ...expired, before: '2026-06-01' })[0] as Recorded)[0]?.equal, {
    env_id: 'env',
  })
})
documents('begins with its fact', () => beginsWith(audit, exampleOf.ProjectRenamed))
documents('is linked from its beginning', () => beginsWith(auditLinks, exampleOf.ProjectRenamed))

documents.run()
