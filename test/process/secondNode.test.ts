import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { installation } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const nodes = suite('a second node on the log of an installation', { timeoutMs: 60_000 })

const SVC_MASTER_KEY = Buffer.alloc(32, 7).toString('base64')

nodes('with an empty data directory is refused: it would lack every build and every secret', async () => {
  const standIn = await startStandIn()
  const startIn = (dataDir: string) =>
    spawnServer({
      dataDir,
      env: installation(dataDir, {
        SVC_EVENT_STORE: standIn.url,
        SVC_READ_MODELS: 'embedded:',
        SVC_BLOBS: 'embedded:',
        SVC_REDIS: '',
        SVC_MASTER_KEY,
      }),
    })
  const first = await startIn(tempDir())
  const dataDir = tempDir()
  const refused = await startIn(dataDir).then(
    () => new Error('Expected a refusal'),
    (error: unknown) => error as Error,
  )
  assert.match(refused.message, /svc: SVC_BLOBS: the blobs do not belong to this log: .*root key.*$/m)
  assert.equal(readdirSync(join(dataDir, 'blobs', 'objects')), [])
  await first.end('SIGTERM')
  await standIn.stop()
})
nodes.run()
