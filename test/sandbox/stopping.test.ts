import * as assert from 'uvu/assert'
import type { HostCall } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

const stopping = suite<Workbench>('stopping a run')

stopping.before(async (context) => void Object.assign(context, await openWorkbench('wrong')))
stopping.after(({ runtime }) => runtime.close())

stopping('that blocks the event loop kills its process', async ({ failure, invoke }) => {
  const { code } = await failure('dies/spin')
  assert.is(code, 'unresponsive')
  assert.type(await resultOf(invoke('dies/identity')), 'number')
})

stopping('that continues after its timeout ends as timeout after the grace period', async ({ failure }) => {
  const error = await failure('dies/stubborn', { timeoutMs: 50 })
  assert.equal(error, { code: 'timeout', message: 'The run did not end within 50 ms' })
})

stopping('that ignores its timeout lets the other runs of its process finish', async () => {
  const { runtime, invoke, failure } = await openWorkbench('ok', { graceMs: 1500 })
  const before = await resultOf(invoke('orders.handlers/identity'))
  const { promise: held, resolve: letGo } = Promise.withResolvers<null>()
  const other = invoke('orders.handlers/refused', { onHostCall: () => held })
  assert.is((await failure('orders.handlers/waits', { timeoutMs: 20 })).code, 'timeout')
  const next = invoke('orders.handlers/identity')
  letGo(null) // the process is ended after another period of grace
  assert.is(await resultOf(other), 'no error')
  assert.is.not(await resultOf(next), before)
  await until(() => runtime.children === 1)
  await runtime.close()
})

stopping('that reacts to its signal ends at once and keeps its process', async () => {
  const { runtime, invoke } = await openWorkbench('ok', { graceMs: 10_000 })
  const before = await resultOf(invoke('orders.handlers/identity'))
  const controller = new AbortController()
  const run = invoke('orders.handlers/polite', { signal: controller.signal })
  controller.abort()
  assert.equal(await run, {
    status: 'failed',
    error: { code: 'cancelled', message: 'The run was cancelled' },
  })
  assert.is(await resultOf(invoke('orders.handlers/identity')), before)
  await runtime.close()
})

stopping('that waits for a host call rejects that call', async () => {
  const { runtime, failure } = await openWorkbench('ok', { graceMs: 10_000 })
  const controller = new AbortController()
  const onHostCall = () => {
    controller.abort()
    return new Promise<never>(() => {})
  }
  const { code } = await failure('orders.handlers/everything', { signal: controller.signal, onHostCall })
  assert.is(code, 'cancelled')
  await runtime.close()
})

stopping('that waits for more host calls than one run may make at once rejects them all', async () => {
  const code = `
    import { files, run } from 'svc'
    export const runsMany = async (times) => {
      await Promise.allSettled(Array.from({ length: times }, () => run('a/b')))
      await files.delete('left')
    }
    export const mark = () => (globalThis.mark ??= Math.random())
  `
  const { runtime, invoke, failure } = await openWorkbench(
    { 'm.js': code },
    { graceMs: 10_000, heartbeatMs: 15_000 },
  )
  const before = await resultOf(invoke('m/mark'))
  const controller = new AbortController()
  const calls: string[] = []
  const onHostCall = ({ op }: HostCall) => {
    calls.push(op)
    if (op === 'files') return Promise.resolve(null)
    if (calls.length === 100) controller.abort()
    return new Promise<never>(() => {})
  }
  const stopped = failure('m/runsMany', { args: [150], signal: controller.signal, onHostCall })
  assert.is((await stopped).code, 'cancelled')
  assert.equal(calls.slice(100), ['files'])
  assert.is(await resultOf(invoke('m/mark')), before)
  await runtime.close()
})

stopping('that has calls without a handler leaves it the time to end, and keeps its process', async () => {
  const code = `
    import { call, currentRun, files } from 'svc'
    export const cleansUp = async () => {
      void call('a/b')
      void call('a/c')
      const { signal } = currentRun()
      try {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      } finally {
        await new Promise((resolve) => setTimeout(resolve, 1))
        await files.delete('left')
        globalThis.cleaned = true
      }
    }
    export const mark = () => [globalThis.cleaned ?? false, (globalThis.mark ??= Math.random())]
  `
  const { runtime, invoke, failure } = await openWorkbench(
    { 'm.js': code },
    { graceMs: 10_000, heartbeatMs: 15_000 },
  )
  const [, before] = (await resultOf(invoke('m/mark'))) as unknown[]
  const controller = new AbortController()
  const calls: string[] = []
  const onHostCall = ({ op }: HostCall) => {
    calls.push(op)
    if (op === 'files') return Promise.resolve(null)
    if (calls.length === 2) controller.abort()
    return new Promise<never>(() => {})
  }
  const stopped = await failure('m/cleansUp', { signal: controller.signal, onHostCall })
  assert.equal(stopped, { code: 'cancelled', message: 'The run was cancelled' })
  assert.equal(calls, ['call', 'call', 'files'])
  assert.equal(await resultOf(invoke('m/mark')), [true, before])
  await runtime.close()
})

stopping('in the queue ends without a start', async () => {
  const { runtime, invoke, failure } = await openWorkbench('ok', { runsPerChild: 1 })
  const first = invoke('orders.handlers/later', { args: [200] })
  const controller = new AbortController()
  const queued = failure('orders.handlers/identity', { signal: controller.signal })
  controller.abort()
  assert.is((await queued).code, 'cancelled')
  assert.is(await resultOf(first), 'done')
  await runtime.close()
})

stopping.run()
