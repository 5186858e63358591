import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { cause, openNode, startRun } from '../../support/openNode.ts'
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

cancel.run()
