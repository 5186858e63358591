import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { hasFrozenChild, openWorkbench, resultOf, type Workbench } from './harness.ts'

const code = `
  import { currentRun, emit, run } from 'svc'
  import { setTimeout as wait, setInterval as every, scheduler } from 'node:timers/promises'
  import util, { promisify } from 'node:util'
  import timers from 'node:timers'
  import { readFile } from 'node:fs/promises'
  import fs from 'node:fs'
  import net from 'node:net'
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  globalThis.fired = {}
  const count = (name) => () => (globalThis.fired[name] = (globalThis.fired[name] ?? 0) + 1)
  const loops = {
    setTimeout: (f) => { const again = () => { f(); setTimeout(again, 5) }; again() },
    setInterval: (f) => setInterval(f, 5),
    setImmediate: (f) => { const again = () => { f(); setImmediate(again) }; again() },
    'node:timers': (f) => timers.setInterval(f, 5),
    'timers/promises': async (f) => { for (;;) { await wait(5); f() } },
    'an iterated interval': async (f) => { for await (const _ of every(5)) f() },
    'the scheduler': async (f) => { for (;;) { await scheduler.wait(5); f() } },
    'promisify': async (f) => { for (;;) { await promisify(setTimeout)(5); f() } },
    'Timeout.refresh': (f) => { const timer = setTimeout(() => { f(); timer.refresh() }, 5) },
    'AbortSignal.timeout': (f) => { const again = () => { f(); AbortSignal.timeout(5).onabort = again }; again() },
    'a timeout of a socket': (f) => { const socket = new net.Socket(); socket.on('timeout', () => { f(); socket.setTimeout(5) }).setTimeout(5) },
    'the class of timeouts': (f) => { const { constructor: Timeout } = setTimeout(() => {}); new Timeout(f, 5, undefined, true, true).refresh() },
    'the class of immediates': (f) => { const { constructor: Immediate } = setImmediate(() => {}); const again = () => { f(); new Immediate(again) }; again() },
    'an imitated timeout': (f) => { const { refresh } = setTimeout(() => {}); refresh.call({ _idleTimeout: 5, _repeat: 5, _onTimeout: f }) },
    'a copied timeout': (f) => { const timer = setTimeout(f, 5); const copy = Object.create(Object.getPrototypeOf(timer), Object.getOwnPropertyDescriptors(timer)); clearTimeout(timer); Object.assign(copy, { _idleTimeout: 5, _onTimeout: f, _repeat: 5, _destroyed: false }).refresh() },
    'a new timer after the end': async (f) => { for (let n = 0; n < 20; n++) await readFile(new URL(import.meta.url)); f(); setInterval(f, 5) },
  }
  setInterval(count('module'), 5)
  export const starts = async (name) => {
    void loops[name](count(name))
    if (name !== 'a new timer after the end') await new Promise((resolve) => setTimeout(resolve, 30))
    return globalThis.fired[name] ?? 0
  }
  export const firedWithin = async (name, ms) => {
    const before = globalThis.fired[name] ?? 0
    await new Promise((resolve) => setTimeout(resolve, ms))
    return (globalThis.fired[name] ?? 0) - before
  }
  export const firedOnce = async (name) => {
    while (!globalThis.fired[name]) await new Promise((resolve) => setTimeout(resolve, 5))
    await new Promise((resolve) => setTimeout(resolve, 60))
    return globalThis.fired[name]
  }
  export const refused = () => [() => fs.watch('.'), () => fs.watchFile('x', () => {}), () => fs.promises.watch('.'), () => Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5), () => util.debounce(() => {}, 5), () => util.throttle(() => {}, 1, 5), () => monitorEventLoopDelay()].map((attempt) => {
    try { attempt(); return 'allowed' } catch ({ code }) { return code }
  })
  export const timesOut = async () => {
    const signal = AbortSignal.timeout(5)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return signal.reason.name
  }
  export const leavesFinalizer = () => {
    globalThis.registry = new FinalizationRegistry(() => { globalThis.finalizedIn = currentRun().run_id })
    for (let n = 0; n < 100; n++) globalThis.registry.register({}, n)
    return currentRun().run_id
  }
  export const waitsForFinalizer = async () => {
    for (let held = []; !globalThis.finalizedIn; await wait(1)) held = Array(100_000).fill({})
    return globalThis.finalizedIn
  }
  export const callsLate = () => void readFile(new URL(import.meta.url)).then(() => readFile(new URL(import.meta.url))).then(() => emit('late'))
  let shared
  export const shares = () => void (shared = run('m/other'))
  export const awaitsShared = () => shared.catch(({ message }) => message)
  export const mark = () => (globalThis.mark ??= Math.random())
  export const prints = () => { void Promise.resolve().then(() => Promise.resolve()).then(async () => {
    for (let n = 0; n < 50; n++) await null
    console.log('late')
  }); console.log('in time') }
  export const spins = () => void readFile(new URL(import.meta.url)).then(() => readFile(new URL(import.meta.url))).then(() => { for (;;); })
  let latest = Infinity
  setInterval(() => { while (Date.now() - latest > 1000) {} if (latest < Infinity) latest = Date.now() }, 5)
  export const blocksAfterPause = () => { latest = Date.now() }
  const namesOf = (timer) => [timer instanceof timer.constructor, util.inspect(timer).split(' ')[0]]
  export const described = () => [...namesOf(setTimeout(() => {})), ...namesOf(setImmediate(() => {}))]
  const idle = setTimeout(() => {}, 1)
  export const refreshes = async () => {
    idle.refresh()
    let fired = 0
    const timer = setTimeout(() => { if (++fired < 2) timer.refresh() }, 1)
    while (fired < 2) await wait(1)
    return fired
  }
  export const samples = async () => { while (delay.count === 0) await wait(1); return delay.count }
  export const timed = async (ms) => { const before = Date.now(); await wait(ms); return Date.now() - before >= ms - 1 }
  export const aborted = async () => {
    const abort = new AbortController()
    const waiting = wait(10_000, 1, { signal: abort.signal }).catch((error) => error.name + ' ' + error.code)
    abort.abort()
    return waiting
  }
`

const after = suite<Workbench>('after the end of a run')
after.before(async (context) => void Object.assign(context, await openWorkbench({ 'm.js': code })))
after.after(({ runtime }) => runtime.close())

for (const name of [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'node:timers',
  'timers/promises',
  'an iterated interval',
  'the scheduler',
  'promisify',
  'Timeout.refresh',
  'AbortSignal.timeout',
  'a timeout of a socket',
])
  after(`no timer of it fires, although the process serves others: ${name}`, async ({ invoke }) => {
    assert.ok(await resultOf(invoke('m/starts', { args: [name] })))
    assert.is(await resultOf(invoke('m/firedWithin', { args: [name, 60] })), 0)
  })

for (const name of [
  'the class of timeouts',
  'the class of immediates',
  'an imitated timeout',
  'a copied timeout',
])
  after(`it cannot make a timer itself: ${name}`, async ({ invoke }) => {
    const outcome = await invoke('m/starts', { args: [name] })
    assert.is(await resultOf(invoke('m/firedWithin', { args: [name, 60] })), 0)
    assert.match(
      outcome.status === 'failed' ? outcome.error.message : outcome.status,
      'A function cannot use',
    )
  })

after('it can create no timer any more', async ({ invoke }) => {
  const name = 'a new timer after the end'
  assert.is(await resultOf(invoke('m/starts', { args: [name] })), 0)
  assert.is(await resultOf(invoke('m/firedOnce', { args: [name] })), 1) // before the timer
})

after('timers of modules continue while the process serves runs', async ({ invoke }) => {
  assert.ok(((await resultOf(invoke('m/samples'))) as number) > 0)
  assert.ok(((await resultOf(invoke('m/firedWithin', { args: ['module', 60] }))) as number) > 0)
})

after('timers of a run in progress are not affected', async ({ invoke }) => {
  assert.equal(await resultOf(invoke('m/described')), [true, 'Timeout', true, 'Immediate'])
  assert.ok(((await resultOf(invoke('m/refreshes'))) as number) >= 2)
  assert.is(await resultOf(invoke('m/timed', { args: [30] })), true)
  assert.is(await resultOf(invoke('m/aborted')), 'AbortError ABORT_ERR')
})

after('what waits like a timer, and belongs to no run, is refused', async ({ invoke }) => {
  assert.equal(
    await resultOf(invoke('m/refused')),
    Array.from({ length: 7 }, () => 'ERR_ACCESS_DENIED'),
  )
})

after('a signal of a run in progress aborts after its time', async ({ invoke }) => {
  assert.is(await resultOf(invoke('m/timesOut')), 'TimeoutError')
})

after('a refused call of it does not replace the process', async ({ invoke }) => {
  const mark = await resultOf(invoke('m/mark'))
  await resultOf(invoke('m/callsLate'))
  assert.is(await resultOf(invoke('m/firedWithin', { args: ['nothing', 60] })), 0)
  assert.is(await resultOf(invoke('m/mark')), mark)
})

after('a call of it rejects for the runs that wait for it', async ({ invoke }) => {
  const mark = await resultOf(invoke('m/mark'))
  await resultOf(invoke('m/shares', { onHostCall: () => new Promise(() => {}) }))
  assert.is(
    await resultOf(invoke('m/awaitsShared')),
    'The run has ended: expected svc functions to be awaited before it returns',
  )
  assert.is(await resultOf(invoke('m/mark')), mark)
})

after('its finalizers belong to it', async ({ invoke }) => {
  const run_id = await resultOf(invoke('m/leavesFinalizer'))
  assert.is(await resultOf(invoke('m/waitsForFinalizer')), run_id)
})

after('its output is dropped', async ({ invoke }) => {
  const lines: string[] = []
  await resultOf(invoke('m/prints', { onLog: ({ text }) => lines.push(text) }))
  await resultOf(invoke('m/firedWithin', { args: ['module', 30], onLog: ({ text }) => lines.push(text) }))
  assert.equal(lines, ['in time'])
})

after('its process is frozen, and serves the next run', async ({ invoke }) => {
  const mark = await resultOf(invoke('m/mark'))
  await until(hasFrozenChild)
  assert.is(await resultOf(invoke('m/mark')), mark)
})

after('its process is replaced when its code continues, and the next run succeeds', async ({ invoke }) => {
  const mark = await resultOf(invoke('m/mark'))
  await resultOf(invoke('m/spins'))
  await until(async () => {
    const outcome = await invoke('m/mark')
    return outcome.status === 'succeeded' && outcome.result !== mark
  })
})

after('no run begins in a process that blocks when it is thawed', async ({ invoke }) => {
  // A process that stands still before it is frozen blocks at once: then another one is prepared.
  const frozen = await until(async () => {
    await resultOf(invoke('m/blocksAfterPause'))
    await until(hasFrozenChild, { timeoutMs: 1000 })
    return clock.monotonic()
  })
  await until(() => clock.monotonic() - frozen > 1100)
  const { status } = await invoke('m/mark')
  assert.is(status, 'succeeded')
})

after.run()
