import * as assert from 'uvu/assert'
import type { HostCall } from '../../src/ports/runtime.ts'
import { longestTurn } from '../support/longestTurn.ts'
import { suite } from '../support/suite.ts'
import { openWorkbench, type Workbench } from './harness.ts'

const FILES = {
  'm.js': `
    import { context, emit } from 'svc'
    const list = (length) => Array(length).fill(1)
    export const listed = (length) => list(length)
    export const masked = async (length) => {
      await context('KEY')
      return list(length)
    }
    export const emits = (length) => Promise.all([emit('large', list(length)), emit('small', 1)])
  `,
}

/** Numbers in a result of 6 MiB, the most. */
const MOST = (6 << 20) / 2 - 8

/** Runs a function until its result is stored. */
const ended = async ({ invoke }: Workbench, target: string, args: readonly unknown[]): Promise<void> => {
  const outcome = await invoke(target, { args, onHostCall: () => Promise.resolve('a secret value') })
  if (outcome.status !== 'succeeded') throw new Error(outcome.error.message)
  outcome.done?.()
}

const large = suite<Workbench>('a large frame', { timeoutMs: 60_000 })
large.before(
  async (context) => void Object.assign(context, await openWorkbench(FILES, { heartbeatMs: 20_000 })),
)
large.after(({ runtime }) => runtime.close())

for (const target of ['listed', 'masked'])
  large(`with the result of ${target} takes many turns of the event loop`, async (bench) => {
    await ended(bench, `m/${target}`, [MOST]) // the code is optimized
    const { longestMs, allMs } = await longestTurn(() => ended(bench, `m/${target}`, [MOST]))
    assert.ok(longestMs < allMs / 3, `one turn took ${longestMs} ms of ${allMs} ms of the processor`)
  })

large('is taken before those that the process sends after it', async ({ invoke }) => {
  const emitted: string[] = []
  const onHostCall = async (call: HostCall) => {
    if (call.op === 'emit') emitted.push(call.data_type)
    return null
  }
  assert.is((await invoke('m/emits', { args: [MOST / 2], onHostCall })).status, 'succeeded')
  assert.equal(emitted, ['large', 'small'])
})

large.run()
