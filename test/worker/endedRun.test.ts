import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { streamOf } from '../../src/events/streams.ts'
import type { RunPlan } from '../../src/events/run.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'
import { calls, openCalls } from './openCalls.ts'

const { node, env, worker_id, begin, ask } = await openCalls()

const content_base64 = Buffer.from('text').toString('base64')
const put: HostCall = { op: 'files', action: 'put', params: { path: 'a', content_base64 } }
const begins: HostCall = { op: 'files', action: 'begin', params: { path: 'a', expected_size: 1 } }
const remove: HostCall = { op: 'files', action: 'delete', params: { path: 'a' } }
const emit: HostCall = { op: 'emit', data_type: 'x', payload: 1 }
const changes: Readonly<Record<string, HostCall>> = {
  ...calls,
  emit,
  'files.put': put,
  'the start of an upload': begins,
  'files.delete': remove,
}

/** The ways in which a run ends while its code may continue. */
const endings = {
  'was cancelled': ({ run_id }: RunPlan) => ({ type: 'CancelRun', run_id, now: clock.iso() }) as const,
  'was lost': ({ run_id }: RunPlan) =>
    ({
      type: 'LoseRun',
      run_id,
      worker_id,
      error: { code: 'worker_lost', message: 'The worker died before the run ended' },
      now: clock.iso(),
    }) as const,
}

const zombie = suite('the code of a run that has ended')
zombie.after(() => node.close())

for (const [ended, commandOf] of Object.entries(endings))
  for (const [name, call] of Object.entries(changes))
    zombie(`because it ${ended}: ${name} is refused, and nothing is stored`, async () => {
      const plan = await begin()
      await ask(plan, put)
      await node.aggregates.streams.handle(streamOf.stream(plan.stream_id), commandOf(plan), env.caller.cause)
      const before = await node.store.head()
      await refusedWith('conflict', () => ask(plan, call))
      assert.is(await node.store.head(), before)
    })

zombie.run()
