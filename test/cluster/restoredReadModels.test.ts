import { MongoClient } from 'mongodb'
import * as assert from 'uvu/assert'
import { ROW_MS } from '../../src/adapters/mongodb/presence.ts'
import { clock } from '../../src/clock.ts'
import { dumped } from '../support/dumped.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, openCluster, type OpenCluster } from '../support/openCluster.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const PATIENT = { timeoutMs: 60_000 }

type Project = { readonly name: string }

type Context = OpenCluster & { readonly client: MongoClient }

const title = 'a MongoDB that is restored while nodes are running'
if (hasClusterEngines()) {
  const restored = suite<Context>(title, { timeoutMs: 180_000 })
  restored.before(async (context) => {
    const opened = await openCluster()
    const client = new MongoClient(opened.cluster.env['SVC_READ_MODELS'] ?? '')
    Object.assign(context, opened, { client })
  })
  restored.after(async ({ stop, client }) => {
    await client.close()
    await stop()
  })

  restored('is noticed: no list lacks what a client has written before', async ({ api, cluster, client }) => {
    const list = async () => {
      const { status, text } = await api.send('GET', '/projects')
      return status === 200 ? text : status
    }
    await api.post<Project>('/projects', { name: 'kept' })
    await until(async () => String(await list()).includes('kept'), PATIENT)
    const restore = await dumped(client)
    await api.post<Project>('/projects', { name: 'later' })
    const nodes = cluster.nodes('api').length
    const everyNode = async () => {
      for (let n = 0; n < 4 * nodes; n++) assert.match(String(await list()), 'later')
    }
    const began = clock.monotonic()
    await everyNode()
    await until(() => clock.monotonic() - began > ROW_MS)
    await everyNode() // none of them trusts a row of before any more
    const projectors = cluster.nodes('projector').length
    for (let n = 0; n < projectors; n++) await cluster.kill('projector') // else they bring it up to date at once
    await restore()
    await until(async () => (await list()) === 503, PATIENT) // the rows of before are trusted for a second
    await cluster.add('projector')
    const answers: (string | number)[] = []
    await until(async () => {
      answers.push(await list())
      return answers.length > 4 * nodes && answers.slice(-4 * nodes).every((answer) => answer !== 503)
    }, PATIENT)
    for (const answer of answers) if (answer !== 503) assert.match(String(answer), 'later')
  })

  restored.run()
} else notHere(title, 'it needs SVC_TEST_MONGODB and SVC_TEST_S3')
