import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { cli, startCli } from '../support/cli.ts'
import { EMBEDDED } from '../support/installation.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const envOf = (SVC_DATA_DIR: string) => ({ ...EMBEDDED, PORT: '0', SVC_DATA_DIR })

/** Starts the service, and resolves when it is ready. */
const serve = async (dataDir = tempDir()) => {
  const running = startCli(['serve'], { env: envOf(dataDir) })
  const url = await until(() => /is ready on ([^\s"]+)/.exec(running.out())?.[1], { timeoutMs: 60_000 })
  return { ...running, url, dataDir }
}

const test = suite('svc serve', { timeoutMs: 90_000 })

test('becomes the service, with the options of npm start', async () => {
  const { process, ended, url, dataDir, err } = await serve()
  assert.is((await fetch(`${url}/readyz`)).status, 200)
  assert.is(readFileSync(join(dataDir, 'lock'), 'utf8'), String(process.pid))
  if (globalThis.process.platform === 'linux') {
    const given = readFileSync(`/proc/${process.pid}/cmdline`, 'utf8').split('\0').slice(1, -2)
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { start: string } }
    const root = globalThis.process.cwd()
    assert.is(
      ['exec', 'node', ...given, 'src/main.ts'].join(' ').replace(`${root}/src`, './src'),
      scripts.start,
    )
  }
  process.kill('SIGTERM')
  assert.equal([await ended, err()], [0, ''])
})

test('leaves no service behind when npm start gets a signal', async () => {
  const env = { ...process.env, ...envOf(tempDir()) }
  const npm = spawn('npm', ['start'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  npm.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  const url = await until(() => /is ready on ([^\s"]+)/.exec(out)?.[1], { timeoutMs: 60_000 })
  npm.kill('SIGTERM')
  const isGone = () =>
    fetch(`${url}/readyz`).then(
      () => false,
      () => true,
    )
  await until(isGone, { timeoutMs: 20_000 })
  await until(() => out.includes('SIGTERM: stopping')) // its output comes by another way
})

test('stops in order at Ctrl-C', async () => {
  const { process, ended, out } = await serve()
  process.kill('SIGINT')
  assert.is(await ended, 0)
  assert.match(out(), 'SIGINT: stopping')
})

test('stops in order when its terminal is closed', async () => {
  const { process, ended, out } = await serve()
  process.kill('SIGHUP')
  assert.is(await ended, 0)
  assert.match(out(), 'SIGHUP: stopping')
})

test('stops in order at a signal that arrives twice, as with npm in between', async () => {
  const { process, ended, out } = await serve()
  process.kill('SIGINT')
  process.kill('SIGTERM') // two equal signals may arrive as one
  assert.is(await ended, 0)
  assert.match(out(), 'stopping')
})

test('ends with the exit code of a service that cannot start', async () => {
  assert.equal(await cli(['serve'], { env: { ...envOf(tempDir()), SVC_SANDBOX: 'none' } }), {
    code: 1,
    out: '',
    err: 'svc: Configuration:\n  SVC_SANDBOX: expected auto, process or namespace; got none\n',
  })
  const taken = await serve()
  const second = await cli(['serve'], { env: envOf(taken.dataDir) })
  assert.is(second.code, 1)
  assert.match(second.err, `is in use by process ${taken.process.pid}`)
  taken.process.kill('SIGTERM')
  assert.is(await taken.ended, 0)
})

test('uses the directory in which it runs, as the other commands do', async () => {
  const cwd = tempDir()
  const running = startCli(['serve'], { env: { ...EMBEDDED, PORT: '0' }, cwd })
  const url = await until(() => /is ready on ([^\s"]+)/.exec(running.out())?.[1], { timeoutMs: 60_000 })
  const listed = await cli(['orgs', 'list'], { env: { PORT: new URL(url).port }, cwd })
  assert.equal([listed.code, listed.err], [0, ''])
  assert.match(listed.out, /^local /m)
  running.process.kill('SIGTERM')
  await running.ended
})

/** Makes Node look too old, so that `svc` starts the Node of its package. */
const old = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } })'
const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(old)}`]

test('started by an older Node passes signals and exit codes on', async () => {
  const dataDir = tempDir()
  const { process, out, ended } = startCli(['serve'], { env: envOf(dataDir), nodeOptions })
  await until(() => out().includes('is ready on'), { timeoutMs: 60_000 })
  assert.is.not(readFileSync(join(dataDir, 'lock'), 'utf8'), String(process.pid))
  process.kill('SIGTERM')
  assert.is(await ended, 0)
  assert.not(existsSync(join(dataDir, 'lock')))
  assert.is((await cli(['nope'], { nodeOptions })).code, 2)
})

test('refuses arguments', async () => {
  const { code, err } = await cli(['serve', '--port', '9000'], { env: envOf(tempDir()) })
  assert.equal([code, err], [2, "svc: unknown option '--port'; run svc serve --help\n"])
})
test.run()
