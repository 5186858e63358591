import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { deploy, publish, type Run, runsOf } from '../support/build.ts'
import { allOf, isLost } from '../support/exactRuns.ts'
import { openApi } from '../support/http.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, openCluster, type OpenCluster } from '../support/openCluster.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const PATIENT = { timeoutMs: 60_000, everyMs: 200 }
const OPERATOR = `operator-${newId()}`
const stopped = new URL('../fixtures/stoppedProjectors.ts', import.meta.url).href

/** Read models that no saga reads. */
const UNREAD = 'audit,auditLinks,sessions,serviceKeys'

const CODE = `
import { currentRun, fn } from 'svc'
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 1, delay: 1 } }, () => {
  if (currentRun().attempt === 1) throw new Error('the first attempt')
})
export const slow = fn({ 'on-event': 'slow' }, () => new Promise((resolve) => setTimeout(resolve, currentRun().attempt === 1 ? 100_000 : 1)))
export const secondly = fn({ schedule: '* * * * * *' }, ({ data }) => data.scheduled_time)
`

const title = 'a read model that no saga reads and that is not complete'
if (hasClusterEngines()) {
  const unread = suite<OpenCluster>(title, { timeoutMs: 180_000 })
  unread.before(async (context) => {
    const variables = {
      SVC_OPERATOR_TOKEN: OPERATOR,
      SVC_TEST_STOPPED: UNREAD,
      NODE_OPTIONS: `--import ${stopped}`,
    }
    Object.assign(context, await openCluster(variables))
    await deploy(context.api, 'jobs', { 'jobs.js': CODE })
  })
  unread.after(({ stop }) => stop())

  unread('delays no retry', async ({ api }) => {
    const { event_id } = await publish(api, 'flaky')
    await until(async () => {
      const chain = (await runsOf(api, event_id)).sort((a, b) => a.attempt - b.attempt)
      return chain.length === 2 && chain[1]?.status === 'succeeded'
    }, PATIENT)
  })

  unread('delays no tick of a schedule', async ({ api }) => {
    await until(async () => {
      const ticks = await allOf<Run>(api, '/runs?type=schedule')
      return ticks.filter(({ status }) => status === 'succeeded').length > 1
    }, PATIENT)
  })

  unread('delays no recovery of a dead worker', async ({ api, cluster }) => {
    const { event_id } = await publish(api, 'slow')
    const runs = () => runsOf(api, event_id)
    await until(async () => (await runs()).some(({ status }) => status === 'running'), PATIENT)
    await cluster.add('worker')
    await cluster.kill('worker')
    await cluster.kill('worker') // one of them has the run
    await until(async () => (await runs()).some(isLost), PATIENT)
    await until(async () => (await runs()).some(({ status }) => status === 'succeeded'), PATIENT)
  })

  unread('keeps no content of a deleted environment', async ({ api, cluster }) => {
    const operator = openApi(cluster.url, OPERATOR)
    const at = (path: string) => `${api.url}/operator${path}`
    const slug = `o-${newId().slice(-12)}`
    await operator.post(at('/orgs'), { slug, plan: 'self_host' })
    const { env_id } = await operator.post<{ env_id: string }>(at(`/orgs/${slug}/envs`), { name: 'dev' })
    assert.is((await operator.send('DELETE', at(`/envs/${env_id}`))).status, 204)
    const purged = new RegExp(`content of a deleted environment was removed.*${env_id}`)
    await until(() => cluster.nodes('saga').some(({ output }) => purged.test(output.join(''))), PATIENT)
  })

  unread.run()
} else notHere(title, 'it needs SVC_TEST_MONGODB and SVC_TEST_S3')
