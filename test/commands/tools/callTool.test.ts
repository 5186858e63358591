import * as assert from 'uvu/assert'
import { BEYOND_TIMEOUT_MS } from '../../../src/commands/runs/requestRun.ts'
import { runStored, storeCall } from '../../../src/commands/tools/callTool.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
const { project_id } = await plantBuild(node, env, {
  name: 'shop',
  functions: [{ ns: 'orders', var: 'charge', timeout: -BEYOND_TIMEOUT_MS }], // its caller waits no longer
})
const tool = deps.views.directory.functionAt(env.env_id, 'orders/charge', project_id)
assert.ok(tool)

const calls = suite('a call of a tool')
calls.after(() => node.close())

/** The refusal of a call that no worker begins, and the status of its run. */
const unbegun = async (gone: AbortSignal) => {
  const { cause } = env.caller
  const request = { credential_id: newId(), session_id: newId(), request_id: 1 }
  const stored = await storeCall(deps, { tool, input: {}, defaultTimeoutMs: 1, request }, cause)
  const progress = { onData: () => Promise.resolve(), gone }
  const { message } = await refusedWith('unavailable', () => runStored(deps, stored, { cause, progress }))
  const stream = streamOf.stream(stored.newId('stream'))
  const status = await node.aggregates.streams.read(
    stream,
    ({ runs }) => runs.get(stored.newId('run'))?.status,
  )
  return { message, status }
}

calls('that no worker began in time does not start later', async () => {
  const { message, status } = await unbegun(new AbortController().signal)
  assert.match(message, 'call the tool again')
  assert.is(status, undefined)
})

calls('continues when its caller has left', async () => {
  const { message, status } = await unbegun(AbortSignal.abort())
  assert.match(message, 'it continues')
  assert.is(status, 'requested')
})

calls('gives back the room of its input when its request is stored', async () => {
  const { cause } = env.caller
  const request = { credential_id: newId(), session_id: newId(), request_id: 1 }
  const waiting = { ...tool, fn: { ...tool.fn, timeout: 60_000 } }
  const stored = await storeCall(deps, { tool: waiting, input: {}, defaultTimeoutMs: 1, request }, cause)
  const gone = new AbortController()
  const progress = { onData: () => Promise.resolve(), gone: gone.signal }
  let isReleased = false
  const release = () => void (isReleased = true)
  const refused = refusedWith('unavailable', () =>
    runStored(deps, { ...stored, release }, { cause, progress }),
  )
  await until(() => isReleased)
  gone.abort()
  assert.match((await refused).message, 'it continues')
})

calls.run()
