import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import type { Cursor } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import { call, deploy, type Run } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { EMBEDDED, installation } from '../support/installation.ts'
import { openLog } from '../support/openLog.ts'
import { allOf } from '../support/exactRuns.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const CODE = `
import { send } from 'svc'
export const f = () => send('began', null)`
/** The deletion comes after a different number of replays each time. */
const ROUNDS = 12
const REPLAYS = 24

const replays = suite('replays while their project or environment is deleted', { timeoutMs: 120_000 })

replays('begin no code after the deletion, and leave no run without an end', async () => {
  const dataDir = tempDir()
  const server = await startServer({ dataDir, env: EMBEDDED })
  const { operatorToken } = openSecrets(readConfig(installation(dataDir, EMBEDDED)))
  const operator = openApi(server.url, operatorToken)
  const at = (path: string) => `${server.url}/operator${path}`
  const slug = `o-${newId().slice(-12)}`
  await operator.post(at('/orgs'), { slug, plan: 'self_host' })

  /** Replays a run again and again; deletes its owner in between. */
  const replayAround = async (api: Api, run_id: string, n: number, remove: () => Promise<unknown>) => {
    const sent: Promise<unknown>[] = []
    for (let m = 0; m < REPLAYS; m++) {
      if (m === n) sent.push(remove())
      sent.push(api.send('POST', `/runs/${run_id}/replay`))
    }
    await Promise.all(sent)
  }
  for (let round = 0; round < ROUNDS; round++) {
    const n = Math.floor((round * REPLAYS) / ROUNDS)
    const project = `p${round}`
    await deploy(server.api, project, { 'f.js': CODE })
    const { run_id } = await call(server.api, 'f/f')
    await replayAround(server.api, run_id, n, () => server.api.remove(`/projects/${project}`))

    const name = `e${round}`
    const { env_id } = await operator.post<{ env_id: string }>(at(`/orgs/${slug}/envs`), { name })
    const { token } = await operator.post<{ token: string }>(at(`/envs/${env_id}/api-keys`), { name: 'k' })
    const api = openApi(server.url, token)
    await deploy(api, 'p', { 'f.js': CODE })
    const { run_id: other } = await call(api, 'f/f')
    await replayAround(api, other, n, () => operator.send('DELETE', at(`/envs/${env_id}`)))
  }
  await until(async () => (await allOf<Run>(server.api, '/runs?status=running')).length === 0)
  await server.stop()

  const { store } = await openLog(readConfig(installation(dataDir, EMBEDDED)))
  const gone = new Map<string, Cursor>()
  const open = new Map<string, string>()
  const late = new Set<string>()
  const begun: string[] = []
  const ending = new AbortController()
  let replayed = 0
  for await (const { events, caughtUp } of store.subscribe({ signal: ending.signal })) {
    for (const { event, metadata, cursor } of events) {
      if (event.type === 'ProjectDeleted') gone.set(event.project_id, cursor)
      if (event.type === 'EnvDeleted') gone.set(event.env_id, cursor)
      if (event.type === 'RunStarted') {
        if (event.replay_of !== undefined) replayed++
        open.set(event.run_id, event.project_id)
        if (gone.has(event.project_id) || gone.has(metadata.env_id ?? '')) late.add(event.run_id)
      }
      if (event.type === 'EventPublished' && late.has(event.source.replace('run:', '')))
        begun.push(event.source)
      if (event.type === 'RunSucceeded' && late.has(event.run_id)) begun.push(event.run_id)
      if (event.type === 'RunSucceeded' || event.type === 'RunFailed' || event.type === 'RunCancelled')
        open.delete(event.run_id)
    }
    if (caughtUp) ending.abort()
  }
  await store.close()
  assert.ok(gone.size >= 2 * ROUNDS)
  assert.ok(replayed > 0)
  assert.equal([...open.keys()], [], 'runs without an end')
  assert.equal(begun, [], 'runs whose code began after the deletion')
})

replays.run()
