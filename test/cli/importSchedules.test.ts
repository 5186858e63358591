import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Embedded, spawnEmbedded } from '../support/backedUp.ts'
import { deploy, type Run } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import type { Api } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { newKey } from '../support/transferred.ts'
import { until } from '../support/until.ts'

const EACH_SECOND = `import { fn } from 'svc'
export const tick = fn({ schedule: '* * * * * *' }, ({ data }) => data)`

const ticksOf = async (api: Api): Promise<string[]> =>
  (await api.page<Run>('/runs?limit=100&type=schedule')).data.map(({ run_id }) => run_id).sort()

/** Resolves when a schedule of another environment has fired again and again. */
const someTicks = async (server: Embedded): Promise<void> => {
  const env = await server.operator.post<{ env_id: string }>(`${server.url}/operator/orgs/local/envs`, {
    name: 'clock',
  })
  const api = await newKey(server, env.env_id)
  await deploy(api, 'clock', { 'f.js': EACH_SECOND })
  await until(async () => (await ticksOf(api)).length >= 3, { timeoutMs: 30_000 })
}

const schedules = suite('schedules of an environment that is imported into the one of a first start', {
  timeoutMs: 120_000,
})

schedules('do not fire after an import that was cut, and their ticks run once', async () => {
  const [source, target] = await Promise.all([spawnEmbedded(), spawnEmbedded()])
  try {
    const [file, cut] = ['whole.svc', 'cut.svc'].map((name) => join(tempDir(), name)) as [string, string]
    await deploy(source.api, 'jobs', { 'f.js': EACH_SECOND })
    await until(async () => (await ticksOf(source.api)).length >= 2)
    const [schedule] = (await source.api.page<{ schedule_id: string }>('/projects/jobs/schedules')).data
    await source.api.post(`/projects/jobs/schedules/${schedule?.schedule_id}/pause`)
    await until(async () => (await cli(['export', 'local/dev', file], { env: source.cliEnv })).code === 0, {
      timeoutMs: 30_000,
    })
    const whole = readFileSync(file, 'latin1')
    const lines = whole.split('\n')
    const pause = lines.findIndex((line) => line.includes('"SchedulePaused"'))
    writeFileSync(cut, `${lines.slice(0, pause).join('\n')}\n`, 'latin1')
    writeFileSync(`${cut}.key`, readFileSync(`${file}.key`))
    const refused = await cli(['import', cut], { env: target.cliEnv })
    assert.match(refused.err, 'incomplete')
    await someTicks(target)
    const envs = await cliJson<{ name: string; importing?: true }[]>(['envs', 'list', 'local'], {
      env: target.cliEnv,
    })
    assert.equal(envs.map(({ name, importing }) => [name, importing]).sort(), [
      ['clock', undefined],
      ['dev', true],
    ])
    const { status, text } = await target.api.send('GET', '/runs')
    assert.is(status, 503)
    assert.match(text, 'The environment is being imported')
    await cliJson(['import', file], { env: target.cliEnv })
    assert.equal(await ticksOf(target.api), await ticksOf(source.api))
  } finally {
    await Promise.all([source.stop(), target.stop()])
  }
})
schedules.run()
