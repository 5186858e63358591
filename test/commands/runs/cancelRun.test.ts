import * as assert from 'uvu/assert'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { calledRunIdOf } from '../../../src/commands/events/planRuns.ts'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import { cpuSecondsOf } from '../../attacks/cpu.ts'
import { cause, now, openNode, startRun } from '../../support/openNode.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const cancel = suite('a cancellation')

cancel('does not wait for a read model that has stopped and that it does not read', async () => {
  const node = await openNode(undefined, { stopped: 'audit' })
  const { run_id, stream_id } = await startRun(node, 'w')
  await cancelRun(node, run_id, cause)
  await until(async () => (await node.typesIn(stream_id)).includes('RunCancelled'))
  await node.close()
})

cancel('of a call whose run has not begun is found in the audit by the id of the run', async () => {
  const node = await openCommands()
  const env = await plantEnv(node, 'acme')
  const { project_id } = await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'a', var: 'b' }] })
  const { deps, views } = node
  const call = { event_type: 'svc:call', event_data: { fn: 'a/b', args: [] }, source: 'api' } as const
  const { event_id } = (await publishEvent(deps, call, env.caller)).event
  await views.settled()
  const run_id = calledRunIdOf(event_id, project_id, 'a/b')
  await cancelRun(deps, run_id, { ...env.caller.cause, actor: 'k', actor_type: 'api-key' })
  await views.settled()
  for (const resource of [run_id, event_id]) {
    const query = { equal: { env_id: env.env_id, resource }, sort: 'position', limit: 9, offset: 0 }
    const found = (await views.auditLinks.find(query)).items
    assert.equal(
      found.map(({ type, actor }) => [type, actor]),
      [['EventHandled', 'k']],
    )
  }
  await node.close()
})

cancel('of a run that no call starts does not read the calls of its time', async () => {
  const node = await openNode()
  const stream_id = newId()
  const published = {
    type: 'EventPublished',
    stream_id,
    event_type: 'svc:call',
    event_data: { fn: 'main/f', args: ['x'.repeat(4000)] },
    source: 'api',
    event_time: now,
  } as const
  const calls = Array.from({ length: 2000 }, () => ({ ...published, event_id: newId() }))
  for (let from = 0; from < calls.length; from += 200) {
    const some = calls.slice(from, from + 200).map((event) => ({ id: newId(), event, metadata: cause }))
    await node.store.append(streamOf.stream(stream_id), some, from === 0 ? 'none' : from - 1)
  }
  await node.views.reach(await node.store.head(), 'events')
  const before = cpuSecondsOf(process.pid)
  for (const { event_id } of calls.slice(0, 60))
    await cancelRun(node, derivedIdBeside(event_id, 'no run'), cause)
  const used = cpuSecondsOf(process.pid) - before
  assert.ok(used < 0.5, `60 cancellations took ${used} s of the processor`)
  await node.close()
})

cancel.run()
