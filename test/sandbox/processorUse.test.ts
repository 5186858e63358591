import { spawn } from 'node:child_process'
import * as assert from 'uvu/assert'
import { openProcessorUse } from '../../src/sandbox/processorUse.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const SPIN = 'for (;;);'
const WRAP = `require('node:child_process').spawnSync(process.execPath, ['--eval', '${SPIN}'])`
const SLEEP = 'setInterval(() => {}, 1000)'

/** Measures a process that executes the code. A wrapper starts its process later, so each look is a new one. */
const measuring = async (
  code: string,
  look: (use: () => ReturnType<ReturnType<typeof openProcessorUse>>) => Promise<unknown>,
) => {
  const child = spawn(process.execPath, ['--eval', code], { stdio: 'ignore', detached: true })
  try {
    await look(() => openProcessorUse(child.pid)())
  } finally {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  }
}

const use = suite('the use of processors', { timeoutMs: 60_000 })

for (const [what, code] of [
  ['a process', SPIN],
  ['the process of a wrapper', WRAP],
] as const)
  use(`grows while ${what} spins, which is always ready`, () =>
    measuring(code, async (looked) => {
      await until(() => (looked()?.usedMs ?? 0) >= 1000, { timeoutMs: 40_000 }) // of one processor of many processes
      assert.is(looked()?.isReady, true)
    }),
  )
use('is not ready while the process waits for a timer', () =>
  measuring(SLEEP, (looked) => until(() => looked()?.isReady === false)),
)
use('is not known for a process that does not exist', () => {
  assert.is(openProcessorUse(2 ** 22 + 1)(), null)
  assert.is(openProcessorUse(undefined)(), null)
})
use.run()
