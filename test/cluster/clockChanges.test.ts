import { writeFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../src/clock.ts'
import { deploy, type Run } from '../support/build.ts'
import { clockAt } from '../support/clockAt.ts'
import { namedUrl } from '../support/engines.ts'
import { allOf } from '../support/exactRuns.ts'
import type { Api } from '../support/http.ts'
import { realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { hasClusterEngines, standInForEventStore } from '../support/openCluster.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const NODES = 3
const PATIENT = { timeoutMs: 90_000, everyMs: 100 }
const CODE = `
import { fn } from 'svc'
const timezone = 'Europe/Berlin'
export const daily = fn({ schedule: { cron: '30 2 * * *', timezone } }, ({ data }) => 'daily ' + data.scheduled_time)
export const hourly = fn({ schedule: { cron: '30 * * * *', timezone } }, ({ data }) => 'hourly ' + data.scheduled_time)
`

/** The rule is in docs/functions.md, Clock changes. The nodes see each instant 2 seconds before it, and all ticks of it. */
const changes = [
  {
    hour: 'is skipped',
    begins: '2027-03-28T00:40:00.000Z',
    ticks: [['daily 2027-03-28T01:00:00.000Z'], ['hourly 2027-03-28T01:30:00.000Z']],
  },
  {
    hour: 'occurs twice',
    begins: '2027-10-31T00:10:00.000Z',
    ticks: [
      ['daily 2027-10-31T00:30:00.000Z', 'hourly 2027-10-31T00:30:00.000Z'],
      ['hourly 2027-10-31T01:30:00.000Z'],
    ],
  },
] as const

/** What the runs of the ticks returned; undefined while one of them has not succeeded. */
const ticksOf = async (api: Api): Promise<readonly string[] | undefined> => {
  const runs = await allOf<Run>(api, '/runs?type=schedule')
  const chains = Object.values(Object.groupBy(runs, ({ stream_id }) => stream_id))
  const results = chains.map((chain) => chain?.find(({ status }) => status === 'succeeded')?.result)
  return results.includes(undefined) ? undefined : results.map(String).toSorted()
}

const title = 'the schedules of three nodes on a day on which the clocks change'
if (!hasClusterEngines()) {
  notHere(title, 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const schedules = suite(title, { timeoutMs: 300_000 })

  for (const { hour, begins, ticks } of changes)
    schedules(`start each tick once when an hour ${hour}, although a node is killed`, async () => {
      virtualClock.set(Date.parse(begins)) // of the stand-in
      const standIn = await standInForEventStore()
      const shifted = clockAt(Date.parse(begins), false)
      const env = { ...realEngines(tempDir(), namedUrl), ...shifted }
      const nodes: ServerProcess[] = await Promise.all(
        Array.from({ length: NODES }, () => spawnServer({ env })),
      )
      const api = () => nodes.at(-1)?.api as Api
      const moveTo = (ms: number): void => {
        virtualClock.set(ms)
        writeFileSync(String(shifted['SVC_TEST_CLOCK']), String(ms - Date.now()))
        for (const { process: node } of nodes) node.kill('SIGUSR2')
      }
      try {
        await deploy(api(), 'ticks', { 'ticks.js': CODE })
        const expected: string[] = []
        for (const at of ticks) {
          moveTo(Date.parse(at[0].split(' ')[1] ?? '') - 2000)
          expected.push(...at)
          await until(async () => ((await ticksOf(api()))?.length ?? 0) >= expected.length, PATIENT)
          if (nodes.length === NODES) await nodes.shift()?.end('SIGKILL')
        }
        assert.equal(await until(() => ticksOf(api()), PATIENT), expected.toSorted())
      } finally {
        await Promise.all(nodes.map((node) => node.stop()))
        await standIn?.stop()
        virtualClock.set(null)
      }
    })
  schedules.run()
}
