import * as assert from 'uvu/assert'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { newId } from '../../src/ids.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { plantStored } from '../support/plantStored.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

interface ReadModel {
  readonly state: string
  readonly behind: number | null
}
interface Skipped {
  readonly read_model: string
  readonly type: string
  readonly id: string
  readonly cursor: string
  readonly error: string
}

const skipped = suite('a fact that read models skipped', { timeoutMs: 60_000 })

skipped('is visible to the operator, in /readyz and in the log; the service works', async () => {
  const dataDir = tempDir()
  const env = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }
  await (await startServer({ dataDir, env })).stop()
  const id = newId()
  const begun = { type: 'UploadBegun', upload_id: newId(), path: 'a', expires_at: '2026-05-01T10:00:00.000Z' }
  // Without its environment, the upload cannot be folded.
  plantStored(dataDir, [['s-0', 0, id, '2026-05-01T10:00:00.000Z', begun, { correlation_id: 'c' }]])
  const { api, url, output, stop } = await startServer({ dataDir, env })
  const { operatorToken } = openSecrets(readConfig(installation(dataDir, env)))
  const operator = openApi(url, operatorToken)
  await until(async () => {
    const readModels = await operator.get<ReadModel[]>(`${url}/operator/projections`)
    return readModels.every(({ state, behind }) => state === 'serving' && behind === 0)
  })
  const { data, pagination } = await operator.page<Skipped>(`${url}/operator/skipped-facts`)
  assert.ok(pagination.total > 0)
  for (const one of data) {
    assert.equal([one.type, one.id], ['UploadBegun', id])
    assert.match(one.error, 'Expected an env_id')
  }
  assert.ok(data.some(({ read_model }) => read_model.startsWith('uploads@')))
  type Ready = { status: string; skipped_facts?: number; skipped?: Skipped[] }
  const ready = await until(async () => {
    const { status, json } = await api.send('GET', `${url}/readyz`)
    const details = json as Ready
    return status === 200 && details.skipped_facts === pagination.total ? details : undefined
  })
  assert.is(ready.skipped_facts, pagination.total)
  assert.is(ready.skipped?.[0]?.id, id)
  assert.ok(output.some((line) => line.includes('A read model lacks a fact') && line.includes(id)))
  await api.post('/projects', { name: 'shop' })
  assert.is((await api.page('/projects')).pagination.total, 1)
  await stop()
})

skipped.run()
