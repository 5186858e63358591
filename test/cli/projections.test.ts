import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import type { ReadModelStatus } from '../../src/projections/readModelStatus.ts'
import { answering } from '../support/answering.ts'
import { cli, cliJson } from '../support/cli.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

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
  assert.match((await cli(['projections', 'list'], { env })).out, /^runs +\d+ +serving +\d+ +\d+ +-$/m)
})

projections('rebuild waits for the end, and finds no difference', async () => {
  const found = await cliJson<Status>(['projections', 'rebuild', '--verify'], { env })
  for (const { state, rebuild } of found)
    assert.equal([state, rebuild?.state, rebuild?.differences], ['serving', 'done', 0])
  assert.not.ok(found.some(({ rebuild }) => rebuild && 'lacking' in rebuild))
})

projections('rebuild takes some read models, also with their version', async () => {
  const { version = 0 } = (await cliJson<Status>(['projections', 'status', 'runs'], { env }))[0] ?? {}
  const found = await cliJson<Status>(['projections', 'rebuild', `runs@${version}`, 'projects'], { env })
  assert.equal(found.map(({ name }) => name).toSorted(), ['projects', 'runs'])
  for (const { rebuild } of found) assert.equal([rebuild?.state, rebuild?.differences], ['done', null])
})

projections('status without a name is about all read models', async () => {
  const all = await cliJson<Status>(['projections', 'list'], { env })
  const found = await cliJson<Status>(['projections', 'status'], { env })
  assert.equal(
    found.map(({ name }) => name),
    all.map(({ name }) => name),
  )
})

projections('rebuild --verify ends with 1 if documents differ, and names the first ones', async () => {
  const dataDir = tempDir()
  const spawn = () => spawnServer({ dataDir, env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
  let service = await spawn()
  try {
    const { project_id } = await service.api.post<{ project_id: string }>('/projects', { name: 'first' })
    await service.stop()
    const db = new DatabaseSync(join(dataDir, 'read-models.db'))
    const found = db.prepare(`SELECT stored_as FROM collections WHERE name = 'projects'`).get()
    db.prepare(
      `UPDATE "${String(found?.['stored_as'])}" SET doc = replace(doc, '"first"', '"damaged"')`,
    ).run()
    db.close()
    service = await spawn()
    assert.is((await service.api.get<{ name: string }[]>('/projects'))[0]?.name, 'damaged')
    const own = { SVC_URL: service.url, SVC_DATA_DIR: dataDir }
    const { code, out } = await cli(['projections', 'rebuild', 'projects', 'events', '--verify'], {
      env: own,
    })
    assert.is(code, 1, out)
    assert.match(out, new RegExp(`projects ${project_id}\n  before .*"damaged".*\n  after  .*"first"`))
    assert.is((await service.api.get<{ name: string }[]>('/projects'))[0]?.name, 'first')
    assert.is((await cli(['projections', 'rebuild', 'projects', '--verify'], { env: own })).code, 0)
  } finally {
    await service.stop()
  }
})

projections('an unknown read model is refused with the names of all', async () => {
  const { code, out, err } = await cli(['projections', 'rebuild', 'rusn'], { env })
  assert.equal([code, out], [1, ''])
  assert.match(err, /There is no read model "rusn". Use one of: .*runs/)
  const status = await cli(['projections', 'status', 'rusn'], { env })
  assert.equal([status.code, status.out], [1, ''])
  assert.match(status.err, /There is no read model "rusn". Use one of: .*runs/)
})

projections(
  'status shows differences on single lines, without characters that a terminal obeys',
  async () => {
    const first_differences = [{ id: 'a\nb', before: { name: 'x\u202e' }, after: null }]
    const runs = { name: 'runs', version: 1, state: 'serving', behind: 0, documents: 1 }
    const rebuild = {
      state: 'done',
      ended_at: 'now',
      differences: 1,
      behind: 0,
      error: null,
      first_differences,
    }
    await answering(
      (_, response) => response.end(JSON.stringify({ data: [{ ...runs, rebuild }] })),
      async (SVC_URL) => {
        const { out } = await cli(['projections', 'status', 'runs'], {
          env: { SVC_URL, SVC_OPERATOR_TOKEN: 'x'.repeat(32) },
        })
        assert.match(out, 'runs a\\u000ab\n  before {"name":"x\\u202e"}\n  after  null\n')
      },
    )
  },
)

projections('rebuild --verify fails if nothing was compared, and says what to do', async () => {
  const served = { version: 1, state: 'serving', behind: 0, documents: 1 }
  const done = { state: 'done', ended_at: 'now', behind: 0, error: null, first_differences: [] }
  const statuses = [
    { name: 'runs', ...served, rebuild: { ...done, differences: null } },
    { name: 'events', ...served, rebuild: { ...done, differences: 0 } },
  ]
  await answering(
    (_, response) => response.end(JSON.stringify({ data: statuses })),
    async (SVC_URL) => {
      const asked = (...options: readonly string[]) =>
        cli(['projections', 'rebuild', ...options], {
          env: { SVC_URL, SVC_OPERATOR_TOKEN: 'x'.repeat(32) },
        })
      const { code, out } = await asked('--verify')
      assert.is(code, 1)
      assert.match(out, /\nThe documents of runs were not compared: repeat the command\n$/)
      assert.not.match(out, 'of events')
      assert.is((await asked('--verify', '--json')).code, 1)
      assert.is((await asked('--verify', '--no-wait')).code, 0)
      assert.is((await asked()).code, 0)
    },
  )
})

projections('cancel is refused without a rebuild, and names what to look at', async () => {
  const { code, err } = await cli(['projections', 'cancel', 'runs'], { env })
  assert.is(code, 1)
  assert.match(err, /No rebuild of these read models is in progress: see svc projections list/)
})

projections('cancel waits for the end', async () => {
  const row = (rebuild: object) => ({ name: 'runs', version: 1, behind: 0, documents: 1, rebuild })
  const waiting = row({ state: 'building', behind: 5, from_version: null, error: 'it is being cancelled' })
  const over = row({ state: 'failed', behind: 0, from_version: null, error: 'It was cancelled' })
  const replies = [[waiting], [waiting], [over]].map((data) => JSON.stringify({ data }))
  const asked: string[] = []
  await answering(
    (request, response) => {
      asked.push(`${request.method} ${request.url}`)
      response.end(replies.shift())
    },
    async (SVC_URL) => {
      const { code, out } = await cli(['projections', 'cancel', 'runs'], {
        env: { SVC_URL, SVC_OPERATOR_TOKEN: 'x'.repeat(32) },
      })
      assert.is(code, 0)
      assert.match(out, /failed: It was cancelled/)
    },
  )
  assert.equal(asked, [
    'POST /operator/projections/cancel',
    'GET /operator/projections',
    'GET /operator/projections',
  ])
})

projections('rebuild says how its end is found when the service goes away', async () => {
  const rebuild = { state: 'running', behind: 5, from_version: null }
  const runs = { name: 'runs', version: 1, state: 'rebuilding', behind: 0, documents: 1, rebuild }
  const replies = [{}, [runs]].map((data) => JSON.stringify({ data }))
  await answering(
    (_, response) => {
      const reply = replies.shift()
      if (reply === undefined) response.destroy()
      else response.end(reply)
    },
    async (SVC_URL) => {
      const { code, out, err } = await cli(['projections', 'rebuild', 'runs'], {
        env: { SVC_URL, SVC_OPERATOR_TOKEN: 'x'.repeat(32) },
      })
      assert.equal([code, out], [1, ''])
      assert.match(err, /does not answer.*; the rebuild continues then: see svc projections status\n$/)
    },
  )
})

projections.run()
