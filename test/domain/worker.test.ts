import { worker } from '../../src/domain/worker.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const now = '2026-05-01T10:00:00.000Z'
const given = givenOf(worker, { correlation_id: 'c' })
const started: DomainEvent & { type: 'WorkerStarted' } = {
  type: 'WorkerStarted',
  worker_id: 'w',
  node: 'host/1',
  at: now,
}
const stopped: DomainEvent & { type: 'WorkerStopped' } = { type: 'WorkerStopped', worker_id: 'w', at: now }
const lost: DomainEvent & { type: 'WorkerLost' } = { type: 'WorkerLost', worker_id: 'w', at: now }
const start = { type: 'StartWorker', worker_id: 'w', node: 'host/1', now } as const
const stop = { type: 'StopWorker', worker_id: 'w', now } as const
const lose = { type: 'LoseWorker', worker_id: 'w', now } as const

const life = suite('a worker')
life('starts once', () => {
  given().when(start).then(started)
  given(started).when(start).then()
})
life('stops once', () => {
  given(started).when(stop).then(stopped)
  given(started, stopped).when(stop).then()
})
life('is lost once', () => {
  given(started).when(lose).then(lost)
  given(started, lost).when(lose).then()
})
life('that stopped is not lost, that was lost does not stop, and neither starts again', () => {
  given(started, stopped).when(lose).then()
  given(started, lost).when(stop).then()
  for (const end of [stopped, lost]) given(started, end).when(start).refuses('not_found')
})
life('that never started neither stops nor is lost', () => {
  given().when(stop).then()
  given().when(lose).then()
})
life.run()
