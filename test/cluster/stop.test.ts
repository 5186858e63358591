import * as assert from 'uvu/assert'
import { deploy, type Run, type Webhook } from '../support/build.ts'
import { namedUrl } from '../support/engines.ts'
import { realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, standInForEventStore } from '../support/openCluster.ts'
import { spawnServer, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const HOOK = `
import { setTimeout } from 'node:timers/promises'
import { fn } from 'svc'
export const slow = fn({ webhook: { service: 'slow', path: '/hook' } }, async ({ body }) => { await setTimeout(body); return 'answered' })
`

const title = 'an API node that is asked to stop'
if (!hasClusterEngines()) {
  notHere(title, 'it needs SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const stopping = suite(title, { timeoutMs: 120_000 })

  stopping('answers the callers whose runs are on another node', async () => {
    const standIn = await standInForEventStore()
    const env = realEngines(tempDir(), namedUrl)
    const others = await startServer({ env: { ...env, SVC_ROLES: 'worker,projector,saga' } })
    const node = await spawnServer({ env: { ...env, SVC_ROLES: 'api' } })
    const { api } = node
    await deploy(api, 'work', { 'jobs.js': HOOK })
    const [hook] = await api.get<Webhook[]>('/projects/work/webhooks')
    const reply = api.send('POST', hook?.url ?? '', { body: 8000 })
    const isRunning = async () => (await api.get<Run[]>('/runs')).some(({ status }) => status === 'running')
    await until(isRunning)
    const ended = node.end('SIGTERM')
    assert.equal((await reply).json, 'answered')
    assert.is(await ended, 0)
    await others.stop()
    await standIn?.stop()
  })

  stopping.run()
}
