import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { deploy } from '../support/build.ts'
import { hasChromium, startChromium } from '../support/chromium.ts'
import { installation } from '../support/installation.ts'
import { openDashboard, operatorTokenOf } from '../support/openDashboard.ts'
import { openLog } from '../support/openLog.ts'
import { plantStored } from '../support/plantStored.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const defects = suite('defects in the dashboard', { timeoutMs: 60_000 })
const story = (name: string, work: () => Promise<void>) =>
  hasChromium() ? defects(name, work) : defects.skip(name)

/** Stores an event that a defect kept from its handlers, as an earlier version would have. */
const abandon = async (dataDir: string, env_id: string): Promise<void> => {
  const { store } = await openLog(readConfig(installation(dataDir)))
  const [stream_id, event_id] = [newId(), newId()]
  const facts: readonly DomainEvent[] = [
    { type: 'StreamCreated', stream_id },
    {
      type: 'EventPublished',
      event_id,
      stream_id,
      event_type: 'paid',
      event_data: { n: 7 },
      source: 'api',
      event_time: '2026-05-01T10:00:00.000Z',
    },
    {
      type: 'EventHandled',
      event_id,
      stream_id,
      run_ids: [],
      error: { code: 'internal_server_error', message: 'could not be dispatched' },
    },
  ]
  const metadata = { env_id, correlation_id: newId() }
  await store.append(
    streamOf.stream(stream_id),
    facts.map((event) => ({ id: newId(), event, metadata })),
    'none',
  )
  await store.close()
}

story('an abandoned event is replayed once, and its handler runs', async () => {
  const first = await startServer()
  const { env_id } = await first.api.get<{ env_id: string }>('/env')
  await deploy(first.api, 'shop', {
    'shop.js': `import { fn } from 'svc'; export const on = fn({ 'on-event': 'paid' }, (e) => e.data)`,
  })
  await first.stop()
  await abandon(first.dataDir, env_id)

  const [server, chromium] = await Promise.all([startServer({ dataDir: first.dataDir }), startChromium()])
  const { page, errors } = await openDashboard(chromium, server, {
    token: operatorTokenOf(server),
    path: '/operator?section=defects',
  })
  const row = page.getByRole('row').filter({ hasText: 'could not be dispatched' })
  await row.getByRole('button', { name: 'Replay' }).click()
  assert.is((await server.api.page('/runs')).pagination.total, 0, 'the dialog asks first')
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
  await until(async () => row.getByRole('button', { name: 'Replay' }).isDisabled())
  await until(async () => (await server.api.page('/runs?status=succeeded')).pagination.total === 1)
  assert.equal(errors, [])
  await chromium.close()
  await server.stop()
})

story('a skipped fact is shown with its read model, its place and the error', async () => {
  const env = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }
  const dataDir = tempDir()
  await (await startServer({ dataDir, env })).stop()
  const at = '2026-05-01T10:00:00.000Z'
  // Without its environment, the upload cannot be folded.
  const begun = { type: 'UploadBegun', upload_id: newId(), path: 'a', expires_at: at }
  plantStored(dataDir, [['s-0', 0, newId(), at, begun, { correlation_id: 'c' }]])
  const [server, chromium] = await Promise.all([startServer({ dataDir, env }), startChromium()])
  const { page, errors } = await openDashboard(chromium, server, {
    token: operatorTokenOf(server),
    path: '/operator?section=defects',
  })
  const row = page
    .getByRole('region', { name: 'Skipped facts, the newest first' })
    .getByRole('row')
    .filter({ hasText: 'uploads@' })
  await row.getByText('UploadBegun', { exact: true }).waitFor()
  await row.getByText('s-0@0', { exact: true }).waitFor()
  await row.getByText(/Expected an env_id/).waitFor()
  await page.getByText('No event was abandoned.').waitFor()
  assert.equal(errors, [])
  await chromium.close()
  await server.stop()
})

defects.run()
