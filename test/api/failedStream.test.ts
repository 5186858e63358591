import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { plantStored } from '../support/plantStored.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { follow } from './sse.ts'

const failed = suite('a live stream that fails because of a defect', { timeoutMs: 60_000 })

failed('ends, and the log names the request with the reason', async () => {
  const dataDir = tempDir()
  const env = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }
  const first = await startServer({ dataDir, env })
  const { env_id } = await first.api.get<{ env_id: string }>('/env')
  await first.stop()
  const [stream_id, run_id] = [newId(), newId()]
  const started = { type: 'RunStarted', run_id, stream_id } // without a target, it cannot be shown
  const at = '2026-05-01T10:00:00.000Z'
  plantStored(dataDir, [[`stream-${stream_id}`, 0, newId(), at, started, { env_id, correlation_id: 'c' }]])
  const { api, output, stop } = await startServer({ dataDir, env })
  const follower = await follow(api, '/env/subscribe?consumer=audit&from=start')
  await follower.rest()
  const lines = output.filter((line) => line.includes('A live stream failed'))
  assert.is(lines.length, 1)
  assert.match(lines[0] ?? '', 'request_id')
  assert.match(lines[0] ?? '', 'TypeError')
  await stop()
})

failed.run()
