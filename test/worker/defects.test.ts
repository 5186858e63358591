import * as assert from 'uvu/assert'
import { envFrame } from '../../src/api/streams/envFrames.ts'
import { RunPlaces } from '../../src/commands/streams/runPlaces.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { AppError, PermanentError } from '../../src/errors.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import type { Logger } from '../../src/logger.ts'
import { forwarding } from '../support/forwarding.ts'
import { type Node, now, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

interface Context {
  node: Node
  logged: { level: 'warn' | 'error'; message: string; fields: Record<string, unknown> }[]
  logger: Logger
}

const defect = suite<Context>('a delivery that fails because of a defect')
defect.before.each(async (context) => {
  const logged: Context['logged'] = []
  const at =
    (level: 'warn' | 'error') =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void logged.push({ level, message, fields })
  const logger: Logger = { info() {}, warn: at('warn'), error: at('error') }
  Object.assign(context, { node: await openNode(), logged, logger })
})
defect.after.each(({ node }) => node.close())

const claimPauses = { firstMs: 1, longestMs: 1 }

/** Appends facts to a stream, with an environment or without one. */
const plant = async ({ store }: Node, stream_id: string, facts: readonly DomainEvent[], env_id?: string) => {
  const metadata = { correlation_id: 'test', ...(env_id !== undefined && { env_id }) }
  await store.append(
    streamOf.stream(stream_id),
    facts.map((event) => ({ id: newId(), event, metadata })),
    'none',
  )
}

const published = (stream_id: string, event_id = newId()): DomainEvent => ({
  type: 'EventPublished',
  event_id,
  stream_id,
  event_type: 'order:created',
  event_data: null,
  source: 'api',
  event_time: now,
})

/** The newest fact of a stream. */
const lastOf = async ({ store }: Node, stream_id: string) => {
  const last = (await Array.fromAsync(store.read(streamOf.stream(stream_id)))).at(-1)
  if (!last) throw new Error(`Expected a fact in ${stream_id}`)
  return last
}

const factsOf = async ({ store }: Node, stream_id: string) =>
  (await Array.fromAsync(store.read(streamOf.stream(stream_id)))).map(({ event }) => event)

defect('records why an event started no runs, logs the stack once, and delays no other', async (context) => {
  const { node, logged } = context
  const [bad, good] = [newId(), newId()]
  await plant(node, bad, [{ type: 'StreamCreated', stream_id: bad }, published(bad)])
  await plant(node, good, [{ type: 'StreamCreated', stream_id: good }, published(good)], 'env')
  const { worker } = openWorker({ ...node, logger: context.logger }, { claimPauses })
  await worker.start()
  const handled = await until(async () =>
    (await factsOf(node, bad)).find((event) => event.type === 'EventHandled'),
  )
  assert.match(
    String(await envFrame(await lastOf(node, bad), new RunPlaces(node.store))),
    /"run_ids":\[\],"error":\{"code":"internal_server_error"/,
  )
  assert.equal(handled.run_ids, [])
  assert.is(handled.error?.code, 'internal_server_error')
  assert.match(handled.error?.message ?? '', /could not be dispatched because of a defect/)
  const other = await until(async () =>
    (await factsOf(node, good)).find((event) => event.type === 'EventHandled'),
  )
  assert.is(other.error, undefined)
  await until(() => logged.length === 2 || undefined)
  assert.equal(
    logged.map(({ level }) => level),
    ['error', 'error'],
  )
  assert.match(String(logged[0]?.fields['error']), /Expected an env_id[\s\S]*\n\s+at /)
  for (const { fields } of logged) assert.match(String(fields['fact']), bad)
  await worker.stop({ drainMs: 10 })
})

defect('ends a requested run as failed', async (context) => {
  const { node } = context
  const { plan } = wanted(await deployBuild(node))
  const { stream_id } = plan
  await plant(node, stream_id, [
    { type: 'StreamCreated', stream_id },
    { type: 'RunRequested', ...plan },
  ])
  const { worker, held } = openWorker({ ...node, logger: context.logger }, { claimPauses })
  await worker.start()
  const failed = await until(async () =>
    (await factsOf(node, stream_id)).find((event) => event.type === 'RunFailed'),
  )
  assert.equal([failed.run_id, failed.started_revision, failed.retry_at], [plan.run_id, null, undefined])
  assert.is(failed.error.code, 'internal_server_error')
  assert.match(failed.error.message, /could not be started because of a defect/)
  assert.is(held.length, 0)
  await worker.stop({ drainMs: 10 })
})

defect('is not given up while an engine is away', async (context) => {
  const { node, logged } = context
  const stream_id = newId()
  await plant(node, stream_id, [{ type: 'StreamCreated', stream_id }, published(stream_id)], 'env')
  let refused = 0
  const away = forwarding(node.store, {
    append(stream, ...rest) {
      if (stream === streamOf.stream(stream_id) && ++refused <= 12) throw new AppError('unavailable', 'Away')
      return node.store.append(stream, ...rest)
    },
  })
  const { worker } = openWorker(
    { ...node, aggregates: openAggregates(away), logger: context.logger },
    { claimPauses },
    away,
  )
  await worker.start()
  const handled = await until(async () =>
    (await factsOf(node, stream_id)).find((event) => event.type === 'EventHandled'),
  )
  assert.equal([refused, handled.error], [13, undefined])
  assert.not(logged.some(({ level }) => level === 'error'))
  await worker.stop({ drainMs: 10 })
})

defect('in a stream that this version cannot read waits for another node or a restart', async (context) => {
  const { node, logged } = context
  const [bad, good] = [newId(), newId()]
  const facts = [{ type: 'StreamCreated', stream_id: bad } as const, published(bad), published(bad)]
  await plant(node, bad, facts, 'env')
  await plant(node, good, [{ type: 'StreamCreated', stream_id: good }, published(good)], 'env')
  let reads = 0
  const unreadable = forwarding(node.store, {
    read(stream, ...rest) {
      if (stream !== streamOf.stream(bad)) return node.store.read(stream, ...rest)
      reads++
      throw new PermanentError('internal_server_error', 'The fact cannot be processed')
    },
  })
  const through = { ...node, aggregates: openAggregates(unreadable), logger: context.logger }
  const first = openWorker(through, { claimPauses }, unreadable)
  await first.worker.start()
  await until(async () => (await node.typesIn(good)).includes('EventHandled') || undefined)
  await until(() => logged.length === 2 || undefined)
  assert.ok(logged.every(({ level }) => level === 'error'))
  assert.ok(reads <= 2, `${reads} reads`) // one attempt for each of the two events
  await first.worker.stop({ drainMs: 10 })
  assert.not((await node.typesIn(bad)).includes('EventHandled'))
  const second = openWorker(node)
  await second.worker.start()
  await until(
    async () => (await node.typesIn(bad)).filter((type) => type === 'EventHandled').length === 2 || undefined,
  )
  await second.worker.stop({ drainMs: 10 })
})

defect.run()
