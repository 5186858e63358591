import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { streamOf } from '../../src/events/streams.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { silent } from '../../src/logger.ts'
import type { Query } from '../../src/ports/readModels.ts'
import { recoverRuns, recoverRunsCore } from '../../src/sagas/recoverRuns.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { now, openNode, startRun } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { reacting } from './reacting.ts'
import { running } from './running.ts'

const w = { worker_id: 'w', node: 'host/1' }
const looked = (...dead: readonly (typeof w)[]) => ({ type: 'looked', dead }) as const
const recover = { do: 'carryOut', key: 'w', command: w } as const

const rule = suite('the rules of recovery')
rule('a dead worker is recovered', () => {
  reacting(recoverRunsCore).given().when(looked(w)).at(0).then(recover)
})
rule('nothing is done while no worker is dead', () => {
  reacting(recoverRunsCore).given().when(looked()).at(0).then()
})
rule('a worker is recovered once, however often it is seen dead', () => {
  reacting(recoverRunsCore).given(looked(w)).when(looked(w)).at(0).then()
})
rule('a recovered worker whose further runs are found is recovered again', () => {
  reacting(recoverRunsCore)
    .given(looked(w), { type: 'recovered', worker_id: 'w' })
    .when(looked(w))
    .at(0)
    .then(recover)
})
rule('a worker that could not be recovered is found again after a while', () => {
  const again = { type: 'recovered', worker_id: 'w' } as const
  reacting(recoverRunsCore)
    .given(looked(w))
    .when({ type: 'failed', worker_id: 'w' })
    .at(5000)
    .then({ do: 'setAlarm', key: 'w', at: 5000 + 60_000, input: again })
})
rule('a worker that cannot be recovered does not delay the others', () => {
  const other = { worker_id: 'v', node: 'host/2' }
  reacting(recoverRunsCore)
    .given(looked(w))
    .when(looked(w, other))
    .at(0)
    .then({ do: 'carryOut', key: 'v', command: other })
})
rule.run()

const recovery = suite('recovery')
recovery('ends the runs of workers that are lost, and of no others', async () => {
  const node = await openNode()
  const ids = [newId(), newId()] as const
  for (const worker_id of ids) {
    const start = { type: 'StartWorker', worker_id, node: 'host/1', now } as const
    await node.aggregates.workers.handle(streamOf.worker(worker_id), start, { correlation_id: worker_id })
  }
  const [lost, kept] = [await startRun(node, ids[0]), await startRun(node, ids[1])]
  await node.views.settled()
  const forgotten: string[] = []
  const liveness = {
    isLost: (id: string) => id === ids[0],
    forget: async (id: string) => void forgotten.push(id),
  }
  void runSaga(recoverRuns({ ...node, liveness, logger: silent }), { logger: silent, clock }, node.signal)
  await until(() => forgotten.length > 0)
  assert.equal(forgotten, [ids[0]])
  assert.ok((await node.typesIn(lost.stream_id)).includes('RunFailed'))
  assert.not.ok((await node.typesIn(kept.stream_id)).includes('RunFailed'))
  await node.close()
})
recovery('waits while the event store is away from all nodes, or was a moment ago', async () => {
  const node = await openNode()
  const worker_id = newId()
  const start = { type: 'StartWorker', worker_id, node: 'host/1', now } as const
  await node.aggregates.workers.handle(streamOf.worker(worker_id), start, { correlation_id: worker_id })
  const run = await startRun(node, worker_id)
  await node.views.settled()
  let [looks, mayRecover] = [0, false]
  const liveness = { isLost: () => ++looks > 0, forget: async () => {} }
  const saga = recoverRuns({ ...node, liveness, mayRecover: () => mayRecover, logger: silent })
  void runSaga(saga, { logger: silent, clock }, node.signal)
  await until(() => looks > 1)
  assert.not.ok((await node.typesIn(run.stream_id)).includes('RunFailed'))
  mayRecover = true
  await until(async () => (await node.typesIn(run.stream_id)).includes('RunFailed'))
  await node.close()
})
recovery('ends a run of a worker that never registered, although no worker came or went', async () => {
  const node = await openNode()
  const recovered: string[] = []
  const liveness = { isLost: () => false, forget: async (id: string) => void recovered.push(id) }
  void runSaga(recoverRuns({ ...node, liveness, logger: silent }), { logger: silent, clock }, node.signal)
  const first = await startRun(node, newId())
  await until(() => recovered.length === 1)
  const later = await startRun(node, newId()) // after the first search
  await until(() => recovered.length === 2)
  for (const { stream_id } of [first, later]) assert.ok((await node.typesIn(stream_id)).includes('RunFailed'))
  await node.close()
})
recovery('leaves a worker alone that was registered since its runs were found', async () => {
  const node = await openNode()
  const worker_id = newId()
  const run = await startRun(node, worker_id)
  await node.views.settled()
  const liveness = { isLost: () => false, forget: async () => {} }
  const saga = recoverRuns({ ...node, liveness, logger: silent })
  const start = { type: 'StartWorker', worker_id, node: 'host/1', now } as const
  await node.aggregates.workers.handle(streamOf.worker(worker_id), start, { correlation_id: worker_id })
  await saga.carryOut({ worker_id, node: null }, running)
  assert.not.ok((await node.typesIn(run.stream_id)).includes('RunFailed'))
  await node.close()
})
recovery('logs a lost worker once, and tries again later to end a run whose facts have expired', async () => {
  const node = await openNode()
  const worker_id = newId()
  const start = { type: 'StartWorker', worker_id, node: 'host/1', now } as const
  await node.aggregates.workers.handle(streamOf.worker(worker_id), start, { correlation_id: worker_id })
  const stream = streamOf.stream((await startRun(node, worker_id)).stream_id)
  await node.store.expire(stream, 0)
  await until(() => node.store.isExpired(stream))
  const logged: unknown[] = []
  const logger = { ...silent, warn: (_: string, fields?: object) => void logged.push(fields) }
  const liveness = { isLost: () => true, forget: async () => {} }
  const restarted = { ...node, aggregates: openAggregates(node.store), liveness, logger }
  const { carryOut } = recoverRuns(restarted)
  assert.equal(await carryOut({ worker_id, node: 'host/1' }, running), { type: 'recovered', worker_id })
  assert.equal(await carryOut({ worker_id, node: 'host/1' }, running), { type: 'failed', worker_id })
  assert.equal(logged, [{ worker_id, node: 'host/1', runs_lost: 0 }])
  await node.close()
})
recovery('reads one thing at a time, so that a slow database answers some worker in time', async () => {
  const node = await openNode()
  const { runs, workers } = node.views
  const dead = [newId(), newId(), newId()]
  for (const worker_id of dead) await startRun(node, worker_id)
  let reads = 0
  let most = 0
  const slowly = async <T>(read: () => Promise<T>): Promise<T> => {
    most = Math.max(most, ++reads)
    await delay(5) // each read meets those that begin meanwhile
    return read().finally(() => reads--)
  }
  const views = {
    ...node.views,
    runs: { ...runs, find: (query: Query) => slowly(() => runs.find(query)) },
    workers: {
      ...workers,
      find: (query: Query) => slowly(() => workers.find(query)),
      get: (id: string) => slowly(() => workers.get(id)),
    },
  }
  const recovered: string[] = []
  const liveness = { isLost: () => false, forget: async (id: string) => void recovered.push(id) }
  void runSaga(
    recoverRuns({ ...node, views, liveness, logger: silent }),
    { logger: silent, clock },
    node.signal,
  )
  await until(() => recovered.length === dead.length)
  assert.equal(recovered.toSorted(), dead.toSorted())
  assert.is(most, 1)
  await node.close()
})
recovery('does not wait for a read model that has stopped and that it does not read', async () => {
  const node = await openNode(undefined, { stopped: 'audit' })
  const recovered: string[] = []
  const liveness = { isLost: () => false, forget: async (id: string) => void recovered.push(id) }
  void runSaga(recoverRuns({ ...node, liveness, logger: silent }), { logger: silent, clock }, node.signal)
  const { stream_id } = await startRun(node, newId())
  await until(() => recovered.length === 1)
  assert.ok((await node.typesIn(stream_id)).includes('RunFailed'))
  await node.close()
})
recovery.run()
