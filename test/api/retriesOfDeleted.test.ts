import * as assert from 'uvu/assert'
import { deploy, publish, type Run, runsOf } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const CODE = `
import { fn } from 'svc'
export const f = fn({ 'on-event': 'order:paid', retry: { attempts: 3, delay: 3600000 } }, () => {
  throw new Error('broke')
})`

const retries = suite('a run that waits for its retry', { timeoutMs: 60_000 })

retries('fails at the deletion of its project, and says why', async () => {
  const server = await startServer()
  const { api } = server
  await deploy(api, 'shop', { 'f.ts': CODE })
  const { event_id } = await publish(api, 'order:paid')
  const statusIs = (is: (status: Run['status']) => boolean) =>
    until(async () => (await runsOf(api, event_id)).find(({ status }) => is(status)))
  await statusIs((status) => status === 'pending_retry')
  await api.remove('/projects/shop')
  const { status, error, retry_at, retried_by } = await statusIs((status) => status !== 'pending_retry')
  assert.equal([status, retry_at, retried_by], ['failed', null, null])
  assert.is(error?.message, 'The project shop was deleted, so the run is not retried')
  assert.is(error?.cause?.message, 'broke')
  await server.stop()
})

retries.run()
