import * as assert from 'uvu/assert'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import { cpuSecondsOf } from '../../attacks/cpu.ts'
import { cause, now, openNode, startRun } from '../../support/openNode.ts'
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
