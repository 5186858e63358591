import * as assert from 'uvu/assert'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { answering } from '../support/answering.ts'
import type { Build } from '../support/build.ts'
import { uploaded } from '../support/buildFacts.ts'
import { cliJson } from '../support/cli.ts'
import { EMBEDDED, installation } from '../support/installation.ts'
import { openLog } from '../support/openLog.ts'
import { writeProject } from '../support/project.ts'
import { relaying } from '../support/relaying.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

interface Deployed {
  readonly build_id: string
  readonly uploaded: boolean
  readonly deployed: boolean
}

const env = { ...EMBEDDED, SVC_MASTER_KEY: '' }

/** More builds than one page of the list has. */
const MANY = 101

/** Adds releases to a project of a service that has stopped. Uploads would take a minute. */
const plantBuilds = async (dataDir: string, { project_id }: Build, env_id: string): Promise<void> => {
  const { store } = await openLog(readConfig(installation(dataDir, env)))
  const stream = streamOf.project(project_id)
  const metadata = { correlation_id: project_id, env_id }
  const facts = Array.from({ length: MANY }, () => ({
    id: newId(),
    event: { ...uploaded(newId()), project_id },
    metadata,
  }))
  const { length } = await Array.fromAsync(store.read(stream))
  await store.append(stream, facts, length - 1)
  await store.close()
}

const many = suite('a project with many builds', { timeoutMs: 120_000 })

many('is rolled back, and its equal build is not uploaded again', async () => {
  const before = await spawnServer({ env })
  const { dataDir } = before
  const given = (url: string) => ({ env: { SVC_URL: url, SVC_DATA_DIR: dataDir } })
  const folder = writeProject({
    'package.json': '{"name":"many"}',
    'src/a.ts': 'export const one = () => 1\n',
  })
  const first = await cliJson<Deployed>(['deploy', folder], given(before.url))
  writeProject({ 'src/a.ts': 'export const two = () => 2\n' }, folder)
  const second = await cliJson<Deployed>(['deploy', folder], given(before.url))
  const { env_id } = await before.api.get<{ env_id: string }>('/env')
  const current = await before.api.get<Build>('/projects/many/builds/deployed')
  await before.stop()
  await plantBuilds(dataDir, current, env_id)

  const server = await spawnServer({ dataDir, env })
  const svc = (...args: readonly string[]) => cliJson<Deployed>(args, given(server.url))
  const newest = await server.api.page<Build>('/projects/many/builds?limit=100')
  assert.is(newest.pagination.total, MANY + 2)
  assert.not.ok(newest.data.some(({ build_id }) => [first.build_id, second.build_id].includes(build_id)))

  assert.is((await svc('rollback', 'many')).build_id, first.build_id)
  for (const options of [['--dry-run'], []]) {
    const asked: string[] = []
    await answering(relaying(server.url, asked), async (url) => {
      const env = { SVC_URL: url, SVC_DATA_DIR: dataDir }
      const { uploaded, deployed, build_id } = await cliJson<Deployed>(['deploy', folder, ...options], {
        env,
      })
      assert.equal([uploaded, deployed, build_id], [false, true, second.build_id])
    })
    const lists = asked.filter((each) => each.startsWith('GET /v1/projects/many/builds?'))
    assert.is(lists.length, 1, asked.join('\n'))
  }
  await server.stop()
})

many.run()
