import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { type Asked, openWorkbench, resultOf, type Workbench } from './harness.ts'

const FILES = {
  'm.js': `
    import { context, emit, run } from 'svc'
    export const quick = (ms) => new Promise((resolve) => setTimeout(resolve, ms, 'in time'))
    export const sends = (count) => Promise.all(Array.from({ length: count }, (_, n) => emit('n', n)))
    export const asks = () => context('KEY')
    export const parent = (length) => run('m/child', 'x'.repeat(length))
    export const child = () => 'from the child'
  `,
}

/** Host calls that one run may have without a reply, and that the service serves at a time for one process. */
const PENDING = 100
const SERVED = 100

/** Two runs ask for twice as much as the service serves at a time. */
const sendTwice = (invoke: Workbench['invoke'], asked: Asked) =>
  [1, 2].map(() => invoke('m/sends', { ...asked, args: [PENDING] }))

/** Over the time that the run may take. */
const passed = (ms: number) => {
  const since = clock.monotonic()
  return until(() => clock.monotonic() > since + ms)
}

const late = suite('a service that is late')

late('does not count its own standstill as time of a run', async () => {
  const { runtime, invoke } = await openWorkbench(FILES)
  await resultOf(invoke('m/quick', { args: [0] }))
  const timeoutMs = 3000 // a child on a busy machine may be late by nearly as much
  const outcome = invoke('m/quick', {
    args: [100],
    timeoutMs,
    onStart: () =>
      setImmediate(() => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.5 * timeoutMs)),
  })
  assert.is(await resultOf(outcome), 'in time')
  await runtime.close()
})

late('does not count the time in which it does not read from the process', async () => {
  const { runtime, invoke } = await openWorkbench(FILES)
  const { promise: served, resolve: serve } = Promise.withResolvers<null>()
  let calls = 0
  const onHostCall = () => {
    calls++
    return served
  }
  const sending = sendTwice(invoke, { onHostCall })
  await until(() => calls === SERVED)
  const timeoutMs = 4000 // it is postponed by as much at most, so a slow machine has the other half
  const quick = invoke('m/quick', { args: [0], timeoutMs })
  await passed(1.5 * timeoutMs)
  serve(null)
  assert.is(await resultOf(quick), 'in time')
  for (const each of sending) assert.is((await each).status, 'succeeded')
  await runtime.close()
})

late('counts it when a run asks for more than the service can serve for ever', async () => {
  const { runtime, invoke } = await openWorkbench(FILES)
  const asked = { timeoutMs: 300, onHostCall: () => new Promise<null>(() => {}) }
  for (const outcome of await Promise.all(sendTwice(invoke, asked)))
    assert.is(outcome.status === 'failed' && outcome.error.code, 'timeout')
  await runtime.close()
})

late('serves other runs while host calls wait for the rate of the plan', async () => {
  const { runtime, invoke } = await openWorkbench(FILES)
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  let waiting = 0
  const untilAllowed = () => {
    waiting++
    return allowed
  }
  const sending = sendTwice(invoke, { untilAllowed })
  await until(() => waiting === 2 * PENDING)
  assert.is(await resultOf(invoke('m/asks', { onHostCall: () => Promise.resolve(7) })), 7)
  allow()
  for (const each of sending) assert.is((await each).status, 'succeeded')
  await runtime.close()
})

late('delivers the results of child runs whose arguments are larger than all that it holds', async () => {
  const { runtime, invoke } = await openWorkbench(FILES, { heartbeatMs: 20_000 })
  const children = Promise.withResolvers<void>()
  let requested = 0
  const onHostCall = async ({ op }: HostCall, onRequested: () => void): Promise<unknown> => {
    assert.is(op, 'run')
    onRequested()
    if (++requested === 6) children.resolve()
    await children.promise
    return resultOf(invoke('m/child'))
  }
  const parents = Array.from({ length: 6 }, () =>
    resultOf(invoke('m/parent', { args: [7 << 20], onHostCall })),
  )
  assert.equal(
    await Promise.all(parents),
    Array.from({ length: 6 }, () => 'from the child'),
  )
  await runtime.close()
})

late.run()
