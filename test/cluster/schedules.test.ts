import * as assert from 'uvu/assert'
import { standInForEventStore } from '../support/openCluster.ts'
import { deploy, type Run } from '../support/build.ts'
import { engineUrl, namedUrl } from '../support/engines.ts'
import { allOf } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const [NODES, KILLS, AFTERWARDS] = [3, 3, 3]
const PATIENT = { timeoutMs: 90_000, everyMs: 20 }
const CODE = `
import { fn } from 'svc'
export const secondly = fn({ schedule: '* * * * * *' }, ({ data }) => data.scheduled_time)
`

/** The runs by tick: first attempts, because a run of a killed node starts again. */
const firstAttempts = async (api: Api): Promise<Run[]> =>
  (await allOf<Run>(api, '/runs?type=schedule')).filter(({ attempt }) => attempt === 1)

const title = 'the schedules of three nodes'
if (engineUrl('mongodb') === null || engineUrl('s3') === null) {
  notHere(title, 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const schedules = suite(title, { timeoutMs: 300_000 })

  schedules('start one run per tick, although a node is killed at each of some ticks', async () => {
    const standIn = await standInForEventStore()
    const env = realEngines(tempDir(), namedUrl)
    const nodes: ServerProcess[] = await Promise.all(
      Array.from({ length: NODES }, () => spawnServer({ env })),
    )
    const api = () => nodes.at(-1)?.api as Api
    const more = async (than: number): Promise<number> =>
      until(async () => {
        const { length } = await firstAttempts(api())
        return length > than ? length : undefined
      }, PATIENT)
    try {
      await deploy(api(), 'ticks', { 'ticks.js': CODE })
      let known = await more(0)
      for (let kill = 0; kill < KILLS; kill++) {
        known = await more(known) // a tick is in progress on all nodes now
        await nodes.shift()?.end('SIGKILL')
        known = await more(known)
        nodes.push(await spawnServer({ env }))
      }
      await more(known + AFTERWARDS)
      const [{ schedule_id } = { schedule_id: '' }] = (
        await api().page<{ schedule_id: string }>('/projects/ticks/schedules')
      ).data
      await api().post(`/projects/ticks/schedules/${schedule_id}/pause`)
      // A tick is listed when a worker has claimed its run, which may be later than the next tick.
      await until(async () => {
        const runs = await allOf<Run>(api(), '/runs?type=schedule')
        const chains = Object.values(Object.groupBy(runs, ({ stream_id }) => stream_id))
        const ticks = chains
          .map((chain) => {
            assert.is(chain?.filter(({ attempt }) => attempt === 1).length, 1)
            return Date.parse(String(chain?.find(({ status }) => status === 'succeeded')?.result))
          })
          .toSorted((a, b) => a - b)
        assert.equal(
          ticks,
          ticks.map((_, n) => (ticks[0] ?? 0) + n * 1000),
          'each second once, and none is missing',
        )
        return true
      }, PATIENT)
    } finally {
      await Promise.all(nodes.map((node) => node.stop()))
      await standIn?.stop()
    }
  })
  schedules.run()
}
