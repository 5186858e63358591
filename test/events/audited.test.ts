import * as assert from 'uvu/assert'
import { AUDITED, isAudited, isOfRuns } from '../../src/events/audited.ts'
import type { Metadata } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { suite } from '../support/suite.ts'
import { exampleOf } from './examples.ts'

const fact = (event: DomainEvent, metadata: Partial<Metadata> = {}) => ({
  event,
  metadata: { correlation_id: 'c', ...metadata },
})
const isIn = (event: DomainEvent, metadata?: Partial<Metadata>) => isAudited(fact(event, metadata))

const audited = suite('the audit')

audited('contains changes of configuration, files and credentials', () => {
  for (const type of [
    'ProjectRenamed',
    'BuildDeployed',
    'FileStored',
    'SessionCreated',
    'OrgChanged',
  ] as const)
    assert.ok(isIn(exampleOf[type]), type)
})

audited('contains no runs, events and data of functions', () => {
  const traffic = [
    'StreamCreated',
    'EventPublished',
    'EventHandled',
    'StreamDataEmitted',
    'RunSucceeded',
  ] as const
  for (const type of traffic) assert.not.ok(isIn(exampleOf[type]), type)
  const { replay_of: _, ...started } = exampleOf.RunStarted
  assert.not.ok(isIn(started))
  assert.not.ok(isIn({ ...exampleOf.RunRequested, target: { ns: 'a', var: 'b' } }))
})

audited('contains evaluated code once, also when the run is returned and requested again', () => {
  const { returned_by: _, ...requested } = exampleOf.RunRequested
  assert.ok(isIn(requested))
  assert.not.ok(isIn(exampleOf.RunRequested))
})

audited('contains a replayed run once, without its retries', () => {
  const { reclaimed: _, ...started } = exampleOf.RunStarted
  assert.ok(isIn(started))
  assert.not.ok(isIn(exampleOf.RunStarted))
  assert.not.ok(isIn({ ...started, attempt: 2 }))
})

audited('contains runs that a caller cancelled, not those that the service cancelled', () => {
  assert.ok(isIn(exampleOf.RunCancelled, { actor: 'k', actor_type: 'api-key' }))
  assert.ok(isIn(exampleOf.RunCancelled, { actor: 'r', actor_type: 'run' }))
  assert.not.ok(isIn(exampleOf.RunCancelled, { actor: 'purge', actor_type: 'system' }))
  assert.not.ok(isIn(exampleOf.RunCancelled))
})

audited('contains calls that a caller cancelled before their run began', () => {
  const cancelled = { ...exampleOf.EventHandled, cancelled_run_id: 'r' }
  assert.ok(isIn(cancelled, { actor: 'k', actor_type: 'api-key' }))
  assert.not.ok(isIn(exampleOf.EventHandled, { actor: 'k', actor_type: 'api-key' }))
  assert.ok(isOfRuns(fact(cancelled)))
})

audited('contains revoked sessions, not those that have expired', () => {
  assert.ok(isIn(exampleOf.SessionsEnded))
  assert.not.ok(isIn({ ...exampleOf.SessionsEnded, reason: 'expired' }))
})

audited('contains a removal of expired runs once, without its parts', () => {
  const { up_to: _, ...whole } = { up_to: '0', ...exampleOf.CallsExpired }
  assert.ok(isIn(whole))
  assert.not.ok(isIn({ ...whole, up_to: '0' }))
})

audited('lists every type that it can contain', () => {
  for (const event of Object.values(exampleOf))
    if (isIn(event, { actor_type: 'api-key' })) assert.ok(AUDITED.includes(event.type), event.type)
})

audited('keeps facts of runs as long as runs', () => {
  assert.ok(isOfRuns(fact(exampleOf.RunRequested)))
  assert.ok(isOfRuns(fact(exampleOf.FileStored, { actor_type: 'run' })))
  assert.not.ok(isOfRuns(fact(exampleOf.FileStored, { actor_type: 'api-key' })))
})

audited.run()
