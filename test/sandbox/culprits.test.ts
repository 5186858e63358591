import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { culpritOf, outcomeAfter } from '../../src/sandbox/culprit.ts'
import { processSandbox } from '../../src/sandbox/processSandbox.ts'
import type { Outcome } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { type Asked, openWorkbench, resultOf, type Workbench } from './harness.ts'

const source = `
  import { readFile } from 'node:fs/promises'
  import { writeSync } from 'node:fs'
  import { context, currentRun } from 'svc'
  const FOREVER = () => new Promise(() => {})
  const ids = []
  const { set } = Map.prototype
  Map.prototype.set = function (key, value) {
    if (value?.info?.run_id) ids.push([value.info.run_id, key])
    return Reflect.apply(set, this, [key, value])
  }
  const frame = (value) => {
    const body = Buffer.from(JSON.stringify(value))
    const head = Buffer.alloc(4)
    head.writeUInt32BE(body.length)
    return Buffer.concat([head, body])
  }
  export const waits = FOREVER
  export const identity = () => process.pid + ':' + own
  const own = Math.random()
  /** Begins when its host call is answered, so that the other runs have begun too. */
  const after = (act) => async () => { await context('begin'); act(); return FOREVER() }
  export const exit = after(() => process.exit(3))
  export const reallyExit = after(() => process.reallyExit(3))
  export const abort = after(() => process.abort())
  export const killed = after(() => process.kill(process.pid, 'SIGKILL'))
  export const spin = after(() => { for (;;); })
  export const heap = after(() => { const held = []; for (;;) held.push(Array(1_000_000).fill({})) })
  export const garbage = after(() => writeSync(3, Buffer.from('{not json}')))
  export const forbidden = after(() => {
    const [, id] = ids.find(([run_id]) => run_id === currentRun().run_id)
    writeSync(3, frame({ type: 'log', id, source: 'elsewhere', text: 'x' }))
  })
  export const pretends = after(() => {
    process.kill(process.pid, 0)
    process.on('SIGUSR2', () => {})
    process.kill(process.pid, 'SIGUSR2')
  })
  export const leaves = async () => {
    await context('begin')
    void readFile(new URL(import.meta.url)).then(() => readFile(new URL(import.meta.url))).then(() => process.exit(4))
  }
  export const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms, 'done'))
`

/** Starts `waits` twice around a run of `name`, which acts when all three have begun. */
const together = async (bench: Workbench, name: string, asked: Asked = {}) => {
  const all = Promise.withResolvers<null>()
  const run_id = newId()
  const onHostCall = () => all.promise
  const first = bench.invoke('main/waits', asked)
  const culprit = bench.invoke(`main/${name}`, { ...asked, run: { run_id }, onHostCall })
  const second = bench.invoke('main/waits', asked)
  await resultOf(bench.invoke('main/identity'))
  all.resolve(null)
  return { run_id, culprit: await culprit, others: await Promise.all([first, second]) }
}

const failureOf = (outcome: Outcome) => {
  if (outcome.status !== 'failed') throw new Error(`Expected a failed run, got ${JSON.stringify(outcome)}`)
  return outcome.error
}

const lossOf = (outcome: Outcome): string => {
  if (outcome.status !== 'lost') throw new Error(`Expected a lost run, got ${JSON.stringify(outcome)}`)
  assert.is(outcome.error.code, 'worker_lost')
  return outcome.error.message
}

const known = suite<Workbench>('a run that ends its process')

known.before(
  async (context) =>
    void Object.assign(context, await openWorkbench({ 'main.js': source }, { heartbeatMs: 15_000 })),
)
known.after(({ runtime }) => runtime.close())

const deaths: Record<string, [code: string, message: RegExp]> = {
  exit: ['worker_lost', /exited with code 3/],
  reallyExit: ['worker_lost', /exited with code 3/],
  abort: ['worker_lost', /SIGABRT/],
  killed: ['worker_lost', /SIGKILL/],
  forbidden: ['protocol_violation', /source/],
}
for (const [name, [code, message]] of Object.entries(deaths)) {
  known(`fails with its reason, and the other runs are lost with it: ${name}`, async (bench) => {
    const { run_id, culprit, others } = await together(bench, name)
    const error = failureOf(culprit)
    assert.is(error.code, code)
    assert.match(error.message, message)
    for (const other of others) assert.is(lossOf(other), `lost with run ${run_id}`)
    assert.type(await resultOf(bench.invoke('main/identity')), 'string')
  })
}

known('after its end is not another run', async (bench) => {
  const { culprit, others } = await together(bench, 'leaves')
  assert.is(culprit.status, 'succeeded')
  for (const other of others) assert.is(lossOf(other), 'lost with a run that had ended')
})

known('is none that only sends signals that end nothing', async (bench) => {
  const before = await resultOf(bench.invoke('main/identity'))
  const controller = new AbortController()
  const run = bench.invoke('main/pretends', { signal: controller.signal })
  assert.is(await resultOf(bench.invoke('main/identity')), before)
  assert.is(await resultOf(bench.invoke('main/identity')), before)
  controller.abort()
  assert.is(failureOf(await run).code, 'cancelled')
})

known('because it does not stop in time costs the other runs no fault', async () => {
  const bench = await openWorkbench({ 'main.js': source }, { graceMs: 100 })
  const run_id = newId()
  const stubborn = bench.invoke('main/waits', { run: { run_id }, timeoutMs: 50 })
  const other = bench.invoke('main/waits')
  assert.is(failureOf(await stubborn).code, 'timeout')
  assert.is(lossOf(await other), `lost with run ${run_id}`)
  await bench.runtime.close()
})

known.run()

const unknown = suite<Workbench>('runs of a process that one of them ended', { timeoutMs: 120_000 })

unknown.before(async (context) => void Object.assign(context, await openWorkbench({ 'main.js': source })))
unknown.after(({ runtime }) => runtime.close())

const secrets: Record<string, [code: string, message: RegExp]> = {
  spin: ['unresponsive', /did not answer/],
  heap: ['worker_lost', /ran out of memory/],
  garbage: ['protocol_violation', /frame/],
}
for (const [name, [code, message]] of Object.entries(secrets)) {
  unknown(`run again in processes of their own if the culprit is not known: ${name}`, async () => {
    const options = name === 'spin' ? {} : { heartbeatMs: 15_000 } // the collector occupies the process too
    const bench = await openWorkbench({ 'main.js': source }, options)
    const { run_id, culprit, others } = await together(bench, name)
    for (const outcome of [culprit, ...others]) assert.match(lossOf(outcome), message)
    const again = { run: { run_id: newId(), origin_run_id: run_id } }
    const identities = await Promise.all([
      resultOf(bench.invoke('main/identity', again)),
      resultOf(bench.invoke('main/identity')),
    ])
    assert.is(new Set(identities).size, 2)
    const alone = failureOf(await bench.invoke(`main/${name}`, again))
    assert.is(alone.code, code)
    assert.match(alone.message, message)
    await bench.runtime.close()
  })
}

unknown('do not exceed their time because another run occupies the process', async () => {
  const bench = await openWorkbench({ 'main.js': source }, { heartbeatMs: 4500, graceMs: 200 })
  await resultOf(bench.invoke('main/identity'))
  const { others } = await together(bench, 'spin', { timeoutMs: 3000 }) // of which the others need some to begin
  for (const other of others) assert.match(lossOf(other), /did not answer/)
  await bench.runtime.close()
})

unknown('run alone when the caller demands it', async ({ invoke }) => {
  const before = await resultOf(invoke('main/identity'))
  assert.is.not(await resultOf(invoke('main/identity', { alone: true })), before)
  assert.is(await resultOf(invoke('main/identity')), before)
})

unknown('do not include a run that came while the process did not answer', async () => {
  const bench = await openWorkbench({ 'main.js': source }, { heartbeatMs: 3000 })
  const elsewhere = { build: { ...bench.build, env_id: newId() } }
  await resultOf(bench.invoke('main/identity', elsewhere))
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const onHostCall = async () => (begin(), null)
  const spinning = bench.invoke('main/spin', { timeoutMs: 300_000, onHostCall }) // the heartbeat counts the time of a processor
  await begun
  // A service that stands still meanwhile notices the silence later, and is late for each of these runs.
  for (let n = 0; n < 20; n++)
    assert.is(await resultOf(bench.invoke('main/later', { ...elsewhere, args: [50] })), 'done')
  const waiting = bench.invoke('main/identity')
  assert.is(failureOf(await spinning).code, 'unresponsive')
  assert.type(await resultOf(waiting), 'string')
  await bench.runtime.close()
})

unknown('are lost when the service ends the process', async () => {
  const bench = await openWorkbench({ 'main.js': source })
  const runs = [bench.invoke('main/waits'), bench.invoke('main/waits')]
  await resultOf(bench.invoke('main/identity'))
  await bench.runtime.close()
  for (const run of runs) assert.is(lossOf(await run), 'The process was shut down')
})

unknown.run()

const rule = suite('the culprit of a dead process')

const error = { code: 'worker_lost', message: 'The process of the function exited with code 3' }
const verdict = (evidence: Parameters<typeof culpritOf<string>>[0]) => {
  const culprit = culpritOf(evidence)
  return evidence.open.map((run) => {
    const outcome = outcomeAfter(culprit, run, { reason: error, idOf: (each) => each })
    return outcome.status === 'failed' ? `${run} failed` : `${run} lost`
  })
}

rule('is its only run, whatever its frames say', () => {
  assert.equal(verdict({ open: ['a'], begun: 1, byEnded: true }), ['a failed'])
  assert.equal(verdict({ open: ['a'], begun: 7 }), ['a failed'])
})

rule('is not its only open run if a run that had ended called for the end', () => {
  assert.equal(verdict({ open: ['a'], begun: 7, byEnded: true }), ['a lost'])
})

rule('is the run that a frame names', () => {
  assert.equal(verdict({ open: ['a', 'b'], begun: 2, named: 'b' }), ['a lost', 'b failed'])
})

rule('is the run that did not stop in time, before all other evidence', () => {
  assert.equal(verdict({ open: ['a', 'b', 'c'], begun: 3, named: 'b', gaveUp: 'a' }), [
    'a failed',
    'b lost',
    'c lost',
  ])
})

rule('is no run if the service ended the process', () => {
  assert.equal(verdict({ open: ['a'], begun: 1, retired: 'The process was shut down' }), ['a lost'])
})

rule('is unknown without evidence', () => {
  assert.equal(culpritOf({ open: ['a', 'b'], begun: 2 }), { kind: 'unknown' })
})

rule.run()

const starting = suite('a process that does not start')

/** A sandbox whose first `failing` processes end at once. */
const sandboxThatFails = (failing: number) => {
  const works = processSandbox()
  let starts = 0
  const start: typeof works.start = (launch) =>
    ++starts > failing ? works.start(launch) : { args: ['/bin/sh', '-c', 'echo no memory >&2; exit 1'] }
  return { sandbox: { tier: works.tier, start }, starts: () => starts }
}

starting('fails no run, which waits for the next one', async () => {
  const { sandbox } = sandboxThatFails(3)
  const bench = await openWorkbench({ 'main.js': source }, { sandbox, backoffMs: 5 })
  const runs = [bench.invoke('main/identity'), bench.invoke('main/identity')]
  for (const run of runs) assert.type(await resultOf(run), 'string')
  await bench.runtime.close()
})

starting('again and again is reported to its runs, which no user code has seen', async () => {
  const { sandbox, starts } = sandboxThatFails(Infinity)
  const bench = await openWorkbench({ 'main.js': source }, { sandbox, backoffMs: 1 })
  for (const run of [bench.invoke('main/identity'), bench.invoke('main/identity')]) {
    const refusal = await run.then(
      () => undefined,
      (refused: unknown) => refused as { code: string; message: string },
    )
    assert.is(refusal?.code, 'unavailable')
    assert.match(refusal?.message ?? '', /did not start in 8 attempts: .*exited with code 1/)
  }
  assert.is(starts(), 8)
  await bench.runtime.close()
})

starting('is no defect of the build that is inspected', async () => {
  const { sandbox } = sandboxThatFails(1)
  const bench = await openWorkbench({ 'main.js': source }, { sandbox })
  const refusal = await bench.inspect().catch((refused: unknown) => refused)
  assert.ok(isAppError(refusal, 'unavailable'))
  assert.is((await bench.inspect()).ok, true)
  await bench.runtime.close()
})

starting.run()
