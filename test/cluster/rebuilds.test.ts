import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import type { ReadModelStatus } from '../../src/projections/readModelStatus.ts'
import { standInForEventStore } from '../support/openCluster.ts'
import { deploy, type Event, type Project } from '../support/build.ts'
import { cliJson } from '../support/cli.ts'
import { engineUrl } from '../support/engines.ts'
import { allOf, WORK } from '../support/exactRuns.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation, realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const REBUILT = ['projects', 'events', 'runs']
const ROUNDS = 3

/** Ids that were acknowledged. */
interface Acknowledged {
  readonly projects: Set<string>
  readonly events: Set<string>
}

/** Creates projects and publishes events until `over`. */
const writing = async (api: Api, { projects, events }: Acknowledged, over: AbortSignal): Promise<void> => {
  while (!over.aborted) {
    const name = `p-${newId()}`
    const project = await api.post<Project>('/projects', { name }).catch((error: unknown) => {
      if (!String(error).includes(' 409 ')) throw error
      return api.get<Project>(`/projects/${name}`) // the repeat of a request whose reply came too late
    })
    projects.add(project.project_id)
    const event = await api.post<Event>('/events', { event_type: 'work', event_data: 1 })
    events.add(event.event_id)
    await delay(150) // a read-model server that scans must keep up
  }
}

/** Counts how often a reader has read. */
interface Reads {
  count: number
}

/** Reads lists until `over`: none may lack what was acknowledged before the request. */
const reading = async (
  api: Api,
  acknowledged: Acknowledged,
  reads: Reads,
  over: AbortSignal,
): Promise<void> => {
  while (!over.aborted) {
    const before = { projects: [...acknowledged.projects], events: [...acknowledged.events] }
    const newest = before.events.at(-1)
    const [projects, events] = await Promise.all([
      allOf<Project>(api, '/projects'),
      allOf<Event>(api, '/events?event_type=work'),
    ])
    const lacks = (ids: readonly string[], found: Iterable<string>) => {
      const listed = new Set(found)
      return ids.filter((id) => !listed.has(id))
    }
    assert.equal(
      lacks(
        before.projects,
        projects.map(({ project_id }) => project_id),
      ),
      [],
    )
    assert.equal(
      lacks(
        before.events,
        events.map(({ event_id }) => event_id),
      ),
      [],
    )
    const { total } = (await api.page('/projects?limit=1')).pagination
    assert.ok(total >= before.projects.length, `${total} projects, expected ${before.projects.length}`)
    if (newest !== undefined) await api.get(`/events/${newest}`)
    reads.count++
    await delay(20)
  }
}

const rebuildsUnderLoad = async (engines: Readonly<Record<string, string>>): Promise<void> => {
  const SVC_OPERATOR_TOKEN = newId()
  const env = { ...engines, SVC_OPERATOR_TOKEN }
  const spawn = (roles: string) => spawnServer({ env: { ...env, SVC_ROLES: roles } })
  const [server, ...both] = await Promise.all([
    spawn('api,worker,saga'),
    spawn('projector'),
    spawn('projector'),
  ])
  const projecting: ServerProcess[] = both
  const over = new AbortController()
  try {
    // As to several nodes: a slow machine may let a request wait too long for the next projector, and then it is repeated.
    const nodes = [server.url, server.url]
    const api = openApi(nodes, openSecrets(readConfig(installation(tempDir(), env))).apiKey)
    const projections = (...args: readonly string[]) =>
      cliJson<readonly ReadModelStatus[]>(['projections', ...args], {
        env: { SVC_URL: server.url, SVC_OPERATOR_TOKEN },
      })
    const rebuilt = async () => (await projections('list')).filter(({ name }) => REBUILT.includes(name))
    await deploy(api, 'work', { 'jobs.js': WORK })
    const acknowledged: Acknowledged = { projects: new Set(), events: new Set() }
    const reads: readonly Reads[] = [{ count: 0 }, { count: 0 }]
    const load = [
      writing(api, acknowledged, over.signal),
      ...reads.map((each) => reading(api, acknowledged, each, over.signal)),
    ]
    for (const each of load) each.catch(() => over.abort()) // its failure is reported below
    for (let round = 0; round < ROUNDS && !over.signal.aborted; round++) {
      await projections('rebuild', ...REBUILT, '--verify', '--no-wait')
      // One of the first two is on standby. From the second kill on, the oldest one projects.
      const [oldest] = projecting.splice(0, 1)
      await delay(round * 700) // the kills meet different states
      await oldest?.end('SIGKILL')
      projecting.push(await spawn('projector'))
      await until(
        async () => over.signal.aborted || (await rebuilt()).every(({ rebuild }) => rebuild?.ended_at),
        { timeoutMs: 60_000, everyMs: 300 },
      )
    }
    const isEnough = () => acknowledged.projects.size > 20 && reads.every(({ count }) => count > 20)
    await until(() => over.signal.aborted || isEnough(), { timeoutMs: 60_000 })
    over.abort()
    await Promise.all(load)
    assert.ok(isEnough(), `${acknowledged.projects.size} projects, read ${JSON.stringify(reads)} times`)
    for (const { name, rebuild } of await rebuilt())
      assert.equal([name, rebuild?.state, rebuild?.differences], [name, 'done', 0])
  } finally {
    over.abort()
    await Promise.all([server, ...projecting].map((node) => node.stop()))
  }
}

const title = 'never leave a gap in an answer while projecting nodes are killed under load'

const rebuilds = suite('rebuilds in a cluster', { timeoutMs: 300_000 })

if (engineUrl('mongodb') === null || engineUrl('s3') === null)
  notHere(title, 'it needs SVC_TEST_MONGODB and SVC_TEST_S3')
else
  rebuilds(title, async () => {
    const standIn = await standInForEventStore()
    try {
      await rebuildsUnderLoad(realEngines(tempDir()))
    } finally {
      await standIn?.stop()
    }
  })

rebuilds.run()
