import * as assert from 'uvu/assert'
import { clock, virtualClock } from '../../../src/clock.ts'
import { endRun } from '../../../src/commands/runs/endRun.ts'
import { storeRequest } from '../../../src/commands/runs/requestRun.ts'
import { findDelivery } from '../../../src/commands/webhooks/deliveries.ts'
import { findWebhook } from '../../../src/commands/webhooks/findWebhook.ts'
import { newId } from '../../../src/ids.ts'
import type { Outcome } from '../../../src/ports/runtime.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
const hook = { service: 's', path: '/a', method: 'POST', name: 'a', description: '', auth: 'none' } as const
await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'h', var: 'a', webhook: hook }] })
const endpoint = await findWebhook(deps, {
  method: 'POST',
  hostname: 'svc.test',
  path: `acme/dev/s/a/${deps.keyring.webhookToken(env.env_id, hook)}`,
})
const worker_id = newId()

const lookUp = (id: string) => findDelivery(deps, endpoint, { id, timeoutMs: 1000 })

/** Runs the function for a delivery that is not accepted yet. Resolves with the id of the run. */
const deliver = async (id: string, outcome: Outcome): Promise<string> => {
  const delivery = await lookUp(id)
  if (delivery.kind === 'accepted') throw new Error(`Expected a new delivery, got ${delivery.run_id}`)
  const plan = {
    run_id: delivery.newId('run'),
    stream_id: delivery.newId('stream'),
    run_type: 'call',
    build_id: 'build',
    project_id: 'project',
    project_name: 'shop',
    target: { ns: 'h', var: 'a' },
    attempt: 1,
    once: true,
  } as const
  const { cause } = env.caller
  const input = { kind: 'args', value: [] } as const
  await storeRequest(deps, { plan, input, cause, now: clock.iso() }, worker_id)
  await endRun(deps, { plan, outcome, worker_id }, cause)
  return plan.run_id
}

const FAILED: Outcome = { status: 'failed', error: { code: 'function_failed', message: 'no' } }
const SUCCEEDED: Outcome = { status: 'succeeded', result: 1 }

const DAY_MS = 24 * 60 * 60 * 1000
/** Sets the clock to a time since the begin of a window of three days. */
const atDay = (day: number): void => virtualClock.set((6900 * 3 + day) * DAY_MS)

const recognized = suite('an accepted delivery')
recognized.after.each(() => virtualClock.set(null))

for (const day of [0, 2]) {
  recognized(
    `is recognized for three days when an attempt failed before, on day ${day} of a window`,
    async () => {
      const id = newId()
      atDay(day)
      await deliver(id, FAILED)
      atDay(day + 2.9)
      const run_id = await deliver(id, SUCCEEDED)
      for (const later of [0.2, 2.9]) {
        atDay(day + 2.9 + later)
        const known = await lookUp(id)
        assert.equal([known.kind, known.kind === 'accepted' && known.run_id], ['accepted', run_id])
      }
    },
  )
}

recognized.after(() => node.close())
recognized.run()
