import * as assert from 'uvu/assert'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { deploy } from '../support/build.ts'
import { cliJson } from '../support/cli.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const FILES = { 'work.ts': 'export const done = () => 1' }

const server = await startServer()
const { api } = server
const env = { SVC_URL: server.url, SVC_KEY: api.key }
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(server.url, operatorToken)

const test = suite('a list of all projects', { timeoutMs: 120_000 })
test.after(() => server.stop())

test('belongs to each project, also if its name is the id of another', async () => {
  await deploy(api, 'work', FILES)
  const { project_id } = await api.get<{ project_id: string }>('/projects/work')
  await api.post('/projects', { name: project_id })
  const builds = await cliJson<{ project: string }[]>(['builds'], { env })
  assert.equal(
    builds.map(({ project }) => project),
    ['work'],
  )
})

test('is complete under a plan that allows fewer requests per second than there are projects', async () => {
  for (let n = 0; n < 12; n += 1) await api.post('/projects', { name: `p${n}` })
  const { org_id } = await api.get<{ org_id: string }>('/env')
  const body = { plan: 'free' }
  await operator.send('PATCH', `${server.url}/operator/orgs/${org_id}`, { body })
  const builds = await cliJson<{ project: string }[]>(['builds'], { env })
  assert.equal(
    builds.map(({ project }) => project),
    ['work'],
  )
})

test.run()
