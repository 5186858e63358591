import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { pathOf } from '../../src/adapters/embedded/blobFiles.ts'
import { AppError } from '../../src/errors.ts'
import { payloadFields } from '../../src/events/payload.ts'
import type { PayloadRef } from '../../src/events/scalars.ts'
import type { RunInput } from '../../src/events/run.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import type { WantedRun } from '../../src/ports/claimer.ts'
import { cause, now } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { openReal } from './openReal.ts'
import { wantedCall } from './openWorker.ts'

const zip = await zipBuild({ 'a.js': 'export const b = (given) => JSON.stringify(given).length' })
const { env_id } = cause
const LARGE = 'x'.repeat(100_000)

const open = async () => {
  const real = await openReal()
  real.held.add(zip)
  return real
}

type Real = Awaited<ReturnType<typeof open>>

/** A run, and the blob of its input. */
interface Given {
  readonly run: WantedRun
  readonly ref: PayloadRef
}

const kept = async ({ node }: Real, value: unknown): Promise<PayloadRef> => {
  const { ref } = await node.payloads.keep(value, { env_id })
  if (!ref) throw new Error('Expected a reference')
  return ref
}

const withInput =
  (toInput: (real: Real) => Promise<[RunInput, PayloadRef]>) =>
  async (real: Real): Promise<Given> => {
    const [input, ref] = await toInput(real)
    return { run: { ...wantedCall(await real.deploy(zip)), input }, ref }
  }

const tick = withInput(async (real) => {
  const ref = await kept(real, LARGE)
  return [{ kind: 'tick', ...payloadFields('value', { ref }) }, ref]
})

const webhookHead = withInput(async (real) => {
  const ref = await kept(real, { method: 'POST', url: 'http://a/b', headers: { 'x-large': LARGE } })
  return [{ kind: 'webhook', ...payloadFields('value', { ref }) }, ref]
})

const webhookBody = withInput(async ({ node }) => {
  const body = (async function* () {
    yield Buffer.from(LARGE)
  })()
  const ref = await node.payloads.keepBytes(body, 10, { env_id })
  if (Buffer.isBuffer(ref)) throw new Error('Expected a reference')
  return [{ kind: 'webhook', value: { method: 'POST', url: 'http://a/b', headers: {} }, body_ref: ref }, ref]
})

const args = withInput(async (real) => {
  const ref = await kept(real, [LARGE])
  return [{ kind: 'args', ...payloadFields('value', { ref }) }, ref]
})

/** A run whose input is an event. */
const event = async (real: Real): Promise<Given> => {
  const ref = await kept(real, LARGE)
  const [stream_id, event_id] = [newId(), newId()]
  const place = { stream_id, env_id, event_id, event_type: 'x', source: 'api', create: true, now }
  const { firstRevision, events } = await real.node.aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'PublishEvent', ...place, data: { ref } },
    cause,
  )
  const run = wantedCall(await real.deploy(zip))
  const revision = firstRevision + events.findIndex(({ type }) => type === 'EventPublished')
  return { run: { ...run, plan: { ...run.plan, input_at: { stream_id, revision } } }, ref }
}

const inputs = suite('a run whose input')

const fileOf = ({ node }: Real, { key }: PayloadRef): string =>
  pathOf({ root: `${node.dir}/blobs/objects` }, key)

const changeBit = (file: string): void => {
  const bytes = readFileSync(file)
  bytes[50_000] = (bytes[50_000] ?? 0) ^ 1
  writeFileSync(file, bytes)
}

for (const [name, given] of Object.entries({ tick, webhookHead, webhookBody, args, event }))
  for (const [what, state, damage] of [
    ['is missing', 'missing', (file: string) => rmSync(file)],
    ['is damaged', 'damaged', (file: string) => writeFileSync(file, 'other bytes')],
    ['has another bit', 'damaged', changeBit],
  ] as const)
    inputs(`(${name}) ${what} in the blobs waits, and uses no attempt`, async () => {
      const real = await open()
      const { node, worker, warnings, lastOf, isOver, close } = real
      const { run, ref } = await given(real)
      const stored = await buffer(await node.blobs.get(ref.key))
      const file = fileOf(real, ref)
      damage(file)
      await worker.take(run)
      await until(() => warnings.length > 0)
      assert.is(await lastOf(run.plan.stream_id), 'RunStarted')
      assert.match(warnings[0] ?? '', `${ref.key} is ${state}`)
      writeFileSync(file, stored)
      await isOver(run.plan.stream_id)
      assert.is(warnings.length, 1)
      await close()
    })

for (const [name, given] of Object.entries({ webhookBody, args, event }))
  inputs(`(${name}) cannot be read when its process asks for it waits, and uses no attempt`, async () => {
    const real = await open()
    const { node, worker, warnings, isOver, close } = real
    const { run, ref } = await given(real)
    const { get } = node.blobs
    let refusals = 3
    node.blobs.get = (key, range) => {
      if (key !== ref.key || refusals-- <= 0) return get(key, range)
      return Promise.reject(new AppError('unavailable', `No answer for ${key}`))
    }
    await worker.take(run)
    await isOver(run.plan.stream_id)
    assert.equal(warnings, [`No answer for ${ref.key}`])
    assert.ok(refusals < 0)
    await close()
  })

const errorOf = async ({ node, lastOf }: Real, stream_id: string) => {
  await until(async () => (await lastOf(stream_id)) === 'RunFailed')
  const last = (await Array.fromAsync(node.store.read(streamOf.stream(stream_id)))).at(-1)?.event
  return last?.type === 'RunFailed' ? last.error : undefined
}

const expireAll = ({ node }: Real): Promise<unknown> =>
  node.aggregates.calls.handle(
    streamOf.calls(env_id),
    { type: 'ExpireCalls', env_id, before: '9999-12-31' },
    cause,
  )

for (const [name, given] of Object.entries({ tick, args }))
  inputs(`(${name}) was removed by retention fails, and the error says so`, async () => {
    const real = await open()
    const { run, ref } = await given(real)
    await expireAll(real)
    rmSync(fileOf(real, ref))
    await real.worker.take(run)
    assert.is((await errorOf(real, run.plan.stream_id))?.code, 'input_expired')
    assert.equal(real.warnings, [])
    await real.close()
  })

inputs('is in a fact that has expired fails, and the error says so', async () => {
  const real = await open()
  const { run } = await args(real)
  await real.worker.take({
    ...run,
    plan: { ...run.plan, input_at: { stream_id: newId(), revision: 1 } },
  })
  assert.is((await errorOf(real, run.plan.stream_id))?.code, 'input_expired')
  await real.close()
})

inputs.run()
