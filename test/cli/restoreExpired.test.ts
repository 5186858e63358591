import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { termsOf } from '../../src/plans/plans.ts'
import { spawnEmbedded } from '../support/backedUp.ts'
import { call, deploy, publish, type Run, runsOf } from '../support/build.ts'
import { cliJson } from '../support/cli.ts'
import { clockAt } from '../support/clockAt.ts'
import { createTenant } from '../support/createTenant.ts'
import { furnish } from '../support/furnish.ts'
import { getAnswers } from '../support/getAnswers.ts'
import { openApi } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const DAY_MS = 86_400_000
const AHEAD_MS = (termsOf.scale.limits.call_retention_days + 2) * DAY_MS

/** Its first run waits for its second attempt for longer than the test takes. */
const CODE = `
import { fn } from 'svc'
export const fails = fn({ 'on-event': 'broken-for-long', retry: { attempts: 1, delay: 3_600_000 } }, () => {
  throw new Error('failed')
})`

/** Events of this size fill a segment of a backup, so that an increment does not write it again. */
const [EVENTS, EVENT_BYTES] = [80, 60_000]

/** Until its first sweep, the restored log has expired facts that the sweep of the original has removed. */
const without = ['/v1/env/subscribe']

const patient = { everyMs: 250, timeoutMs: 60_000 }

const restore = suite('svc restore of an increment', { timeoutMs: 300_000 })

restore(
  'answers as the original, although later facts of a run expired before they were copied',
  async () => {
    const [dir, dataDir, restoredIn] = [join(tempDir(), 'backup'), tempDir(), join(tempDir(), 'data')]
    let server = await spawnEmbedded(dataDir)
    try {
      const svc = <T>(...args: string[]): Promise<T> => cliJson<T>(args, { env: server.cliEnv })
      const { token } = await createTenant(server.cliEnv, { org: 'acme', plan: 'scale' })
      const api = () => openApi(server.url, token)
      await deploy(api(), 'failing', { 'failing.js': CODE })
      const { event_id } = await publish(api(), 'broken-for-long')
      const run = await until(async () => {
        const [first] = await runsOf(api(), event_id)
        return first?.status === 'pending_retry' ? first : undefined
      }, patient)
      for (let n = 0; n < EVENTS; n += 10)
        await Promise.all(Array.from({ length: 10 }, () => publish(api(), 'x', 'x'.repeat(EVENT_BYTES))))
      await svc('backup', dir)
      await api().post(`/runs/${run.run_id}/cancel`)
      await server.stop()

      server = await spawnEmbedded(dataDir, clockAt(Date.now() + AHEAD_MS, true))
      await until(
        () => server.output.join('').includes('Facts that the plans keep no longer were removed'),
        patient,
      )
      const { upload_id } = await furnish(api())
      await svc('backup', dir)
      const answers = await getAnswers(api(), server.operator, { upload_id, without })
      const runIds = async () => (await api().page<Run>('/runs?limit=100')).data.map(({ run_id }) => run_id)
      const before = await runIds()
      assert.not.ok(before.includes(run.run_id))
      await server.stop()

      await cliJson(['restore', dir, '--secrets', join(dataDir, 'secrets.json')], {
        env: { SVC_DATA_DIR: restoredIn },
      })
      server = await spawnEmbedded(restoredIn, clockAt(Date.now() + AHEAD_MS, false))
      const now = await getAnswers(api(), server.operator, { upload_id, without })
      assert.equal(Object.keys(now).sort(), Object.keys(answers).sort())
      for (const [path, answer] of Object.entries(answers)) assert.is(now[path], answer, path)
      const { run_id } = await call(api(), 'f/add', 1, 2)
      assert.equal(await runIds(), [run_id, ...before], 'no other run')
    } finally {
      await server.stop()
    }
  },
)
restore.run()
