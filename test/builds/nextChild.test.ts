import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { SandboxOptions } from '../../src/sandbox/limits.ts'
import { openWorkbench } from '../sandbox/harness.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** Its only function has the number of builds that its process has loaded as its event. */
const COUNTING = `
import { fn } from 'svc'
globalThis.loaded = (globalThis.loaded ?? 0) + 1
export const f = fn({ 'on-event': 'loaded:' + globalThis.loaded }, async () => {})
`

/** A runtime whose first inspection has ended and whose next child has started. */
const inspectedOnce = async (options: Partial<SandboxOptions> = {}) => {
  const started: number[] = []
  const recordChild = (pid: number) => {
    started.push(pid)
    return () => {}
  }
  const { runtime, build, inspect, cacheDir } = await openWorkbench(
    { 'a.js': COUNTING },
    { recordChild, ...options },
  )
  const eventOf = async () => {
    const inspection = await inspect()
    return inspection.ok ? inspection.functions[0]?.on_event : inspection.message
  }
  assert.is(await eventOf(), 'loaded:1')
  await until(() => started.length === 2)
  const temporary = () => readdirSync(join(cacheDir, 'tmp'))
  return { runtime, build, eventOf, started, temporary }
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const next = suite('the child for the next inspection')

next('has started before the build arrives, and serves one build', async () => {
  const { runtime, eventOf, started } = await inspectedOnce()
  assert.is(await eventOf(), 'loaded:1')
  assert.is(started.length, 2)
  await until(() => started.length === 3)
  assert.is(await eventOf(), 'loaded:1')
  assert.is(started.length, 3)
  await runtime.close()
})

next('is no obstacle when its process was ended', async () => {
  const { runtime, eventOf, started } = await inspectedOnce()
  process.kill(started[1] ?? 0, 'SIGKILL')
  await until(() => runtime.children === 0)
  assert.is(await eventOf(), 'loaded:1')
  await runtime.close()
})

next('ends with its folder when no build arrives', async () => {
  const { runtime, eventOf, temporary } = await inspectedOnce({ idleMs: 50 })
  await until(() => runtime.children === 0 && temporary().length === 0)
  assert.is(await eventOf(), 'loaded:1')
  await runtime.close()
})

next('ends with its folder when the runtime is closed', async () => {
  const { runtime, temporary } = await inspectedOnce()
  await runtime.close()
  assert.is(runtime.children, 0)
  assert.equal(temporary(), [])
})

next('leaves no folder when the upload that took it is refused', async () => {
  const { runtime, build, temporary } = await inspectedOnce()
  const refusal = await runtime.inspect(build, { file: '/dev/null' })
  assert.not.ok(refusal.ok)
  await runtime.close()
  assert.equal(temporary(), [])
})

next('has ended when the upload that took it is refused before it is loaded', async () => {
  const { runtime, build, started } = await inspectedOnce()
  const refusal = await runtime.inspect(build, { file: '/dev/null' })
  assert.not.ok(refusal.ok)
  assert.not.ok(isRunning(started[1] ?? 0))
  await runtime.close()
})

next('is not started by a runtime that is closed', async () => {
  const { runtime, inspect } = await openWorkbench({ 'a.js': COUNTING })
  const inspecting = inspect().catch(() => {})
  await runtime.close()
  await inspecting
  assert.is(runtime.children, 0)
})

next.run()
