import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { freePort } from '../support/freePort.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

interface Check {
  readonly name: string
  readonly state: string
  readonly detail: string
  readonly fix: string | null
}
interface Report {
  readonly ok: boolean
  readonly service: boolean
  readonly checks: readonly Check[]
}

const server = await spawnServer({ env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
const env = { SVC_URL: server.url, SVC_DATA_DIR: server.dataDir }
/** An address at which nothing listens. */
const STOPPED = 'http://127.0.0.1:1'

const namesOf = ({ checks }: Report) => checks.map(({ name }) => name)
const reportOf = async (args: readonly string[], given: Readonly<Record<string, string>>) => {
  const { code, out } = await cli(['doctor', '--json', ...args], { env: given })
  return { code, report: JSON.parse(out) as Report }
}

const status = suite('svc status', { timeoutMs: 60_000 })

status('shows the state of a running service', async () => {
  const found = await cliJson<Record<string, unknown>>(['status'], { env })
  assert.equal([found['url'], found['ready'], found['reason']], [server.url, true, null])
  assert.equal([found['pid'], found['node_version']], [server.process.pid, process.versions.node])
  assert.equal(found['engines'], [
    { engine: 'event store', kind: 'embedded', answers: true, since: null },
    { engine: 'read models', kind: 'embedded', answers: true, since: null },
    { engine: 'blobs', kind: 'embedded', answers: true, since: null },
  ])
  assert.equal([found['building'], found['outages'], found['skipped_facts']], [[], [], 0])
  assert.type(found['oldest_untaken_event_ms'], 'number')
  const { out } = await cli(['status'], { env })
  assert.match(out, /^state +ready$/m)
  assert.match(out, /^read models +embedded +answers$/m)
})

status('leaves the engines out without an operator token', async () => {
  const { code, out } = await cli(['status'], { env: { ...env, SVC_DATA_DIR: tempDir() } })
  assert.is(code, 0)
  assert.match(out, /^state +ready$/m)
  assert.not.match(out, 'ENGINE')
})

status('ends with 1 for a wrong token and for a stopped service', async () => {
  const wrong = await cli(['status'], { env: { ...env, SVC_OPERATOR_TOKEN: 'x'.repeat(40) } })
  assert.equal([wrong.code, wrong.out], [1, ''])
  assert.match(wrong.err, 'refused the operator token')
  const stopped = await cli(['status', '--json'], { env: { ...env, SVC_URL: STOPPED } })
  assert.equal([stopped.code, stopped.out], [1, ''])
  assert.match(stopped.err, /^svc: the service at \S+ does not answer .*: start it with svc serve/)
})

const doctor = suite('svc doctor', { timeoutMs: 90_000 })

doctor('has the running service check itself', async () => {
  const { code, report } = await reportOf([], env)
  assert.equal([code, report.ok, report.service], [0, true, true])
  const names = namesOf(report)
  for (const name of [
    'address',
    'service',
    'event store',
    'read models',
    'blobs',
    'disk',
    'Node',
    'sandbox',
    'master key',
  ])
    assert.ok(names.includes(name), name)
  assert.ok(!names.includes('configuration'))
  const { out } = await cli(['doctor'], { env })
  assert.match(out, /^ok +event store +embedded, in /m)
  assert.match(out, /\n\d+ checks: 0 failed, \d+ warnings?\n$/)
})

doctor('prints how to fix a problem, and ends with 1 if a check has failed', async () => {
  const file = join(server.dataDir, 'secrets.json')
  chmodSync(file, 0o644)
  try {
    const { code, out } = await cli(['doctor'], { env })
    assert.is(code, 1)
    assert.match(out, /^failed +master key +other users have access to .*\n +fix: chmod 600 /m)
  } finally {
    chmodSync(file, 0o600)
  }
})

doctor('checks this machine when the service does not run, and changes nothing', async () => {
  const dataDir = join(tempDir(), 'none')
  const { code, report } = await reportOf([], { SVC_URL: STOPPED, SVC_DATA_DIR: dataDir })
  assert.equal([code, report.ok, report.service], [1, false, false])
  assert.equal(report.checks[0]?.name, 'address')
  assert.match(report.checks[0]?.fix ?? '', 'svc serve')
  for (const name of ['configuration', 'event store', 'disk', 'Node', 'sandbox', 'master key'])
    assert.ok(namesOf(report).includes(name), name)
  assert.equal(
    report.checks.filter(({ state }) => state === 'failed').map(({ name }) => name),
    ['address'],
  )
  assert.not(existsSync(dataDir))
})

doctor('is ready for the first start with --local', async () => {
  const { code, report } = await reportOf(['--local'], { SVC_DATA_DIR: join(tempDir(), 'none') })
  assert.equal([code, report.ok], [0, true])
  assert.ok(!namesOf(report).includes('address'))
})

doctor('names settings and engines that cannot work, without their passwords', async () => {
  const wrong = await reportOf(['--local'], { SVC_DATA_DIR: tempDir(), PORT: 'x', SVC_ROLES: 'x' })
  assert.is(wrong.code, 1)
  const settings = wrong.report.checks.filter(({ name }) => name === 'configuration')
  assert.equal(settings.length, 2, 'one for each variable')
  for (const { detail } of settings) assert.match(detail, /^(?:PORT|SVC_ROLES): expected [^\n]+$/)
  const away = await reportOf(['--local'], {
    SVC_DATA_DIR: tempDir(),
    SVC_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
    SVC_READ_MODELS: 'mongodb://svc:hunter2@127.0.0.1:1/models',
  })
  const found = away.report.checks.find(({ name }) => name === 'read models')
  assert.equal([away.code, found?.state], [1, 'failed'])
  assert.match(found?.fix ?? '', 'SVC_READ_MODELS')
  assert.not.match(JSON.stringify(away.report), 'hunter2')
})

doctor('names the engine for which a service waits', async () => {
  const SVC_READ_MODELS = 'mongodb://svc:hunter2@127.0.0.1:1/models'
  const waitingEnv = { ...EMBEDDED, SVC_READ_MODELS, SVC_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') }
  const port = String(await freePort())
  const given = { ...waitingEnv, SVC_DATA_DIR: tempDir(), PORT: port }
  const waiting = startCli(['serve'], { env: given })
  await until(() => fetch(`http://127.0.0.1:${port}/healthz`), { timeoutMs: 60_000 })
  const shown = await until(
    async () => {
      const { code, out } = await cli(['status', '--json'], { env: given })
      const found = JSON.parse(out) as { ready: boolean; reason: string; version: string }
      return found.reason.includes('SVC_READ_MODELS') ? { code, ...found } : null
    },
    { timeoutMs: 60_000, everyMs: 200 },
  )
  assert.equal([shown.code, shown.ready], [1, false])
  const { code, report } = await reportOf([], given)
  assert.is(code, 1)
  assert.equal(
    report.checks.filter(({ state }) => state === 'failed').map(({ name }) => name),
    ['service', 'read models'],
  )
  assert.not.match(JSON.stringify([shown, report]), 'hunter2')
  waiting.process.kill('SIGTERM')
  assert.is(await waiting.ended, 0)
})

doctor('checks this machine too when the service refuses the token', async () => {
  const SVC_OPERATOR_TOKEN = 'wrong-0123456789-0123456789-0123456789'
  const { code, report } = await reportOf([], { ...env, SVC_OPERATOR_TOKEN })
  assert.equal([code, report.service], [1, true])
  const token = report.checks.find(({ name }) => name === 'operator token')
  assert.equal([token?.state, namesOf(report).includes('disk')], ['failed', true])
})
doctor.after(() => server.stop())

status.run()
doctor.run()
