import * as assert from 'uvu/assert'
import type { ReadModelStatus } from '../../src/projections/readModelStatus.ts'
import { cli, cliJson } from '../support/cli.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

type Status = readonly ReadModelStatus[]

const server = await spawnServer({ env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
const env = { SVC_URL: server.url, SVC_DATA_DIR: server.dataDir }

const projections = suite('svc projections', { timeoutMs: 120_000 })
projections.after(() => server.stop())

projections('list shows every read model', async () => {
  const found = await cliJson<Status>(['projections', 'list'], { env })
  assert.ok(found.some(({ name }) => name === 'runs'))
  for (const { state, behind, documents, rebuild } of found) {
    assert.equal([state, rebuild], ['serving', null])
    assert.type(behind, 'number')
    assert.ok(documents >= 0)
  }
  assert.match((await cli(['projections', 'list'], { env })).out, /^runs +\d+ +serving/m)
})

projections('rebuild waits for the end, and finds no difference', async () => {
  const found = await cliJson<Status>(['projections', 'rebuild', '--verify'], { env })
  for (const { state, rebuild } of found)
    assert.equal([state, rebuild?.state, rebuild?.differences], ['serving', 'done', 0])
})

projections('rebuild takes some read models, also with their version', async () => {
  const { version = 0 } = (await cliJson<Status>(['projections', 'status', 'runs'], { env }))[0] ?? {}
  const found = await cliJson<Status>(['projections', 'rebuild', `runs@${version}`, 'projects'], { env })
  assert.equal(found.map(({ name }) => name).toSorted(), ['projects', 'runs'])
  for (const { rebuild } of found) assert.equal([rebuild?.state, rebuild?.differences], ['done', null])
})

projections('an unknown read model is refused with the names of all', async () => {
  const { code, out, err } = await cli(['projections', 'rebuild', 'rusn'], { env })
  assert.equal([code, out], [1, ''])
  assert.match(err, /There is no read model "rusn". Use one of: .*runs/)
  const status = await cli(['projections', 'status', 'rusn'], { env })
  assert.is(status.code, 2)
  assert.match(status.err, 'svc projections list')
})

projections('status without a name is wrong usage', async () => {
  assert.is((await cli(['projections', 'status'], { env })).code, 2)
})

projections.run()
