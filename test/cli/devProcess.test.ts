import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import * as assert from 'uvu/assert'
import { readInstance } from '../../src/cli/instance.ts'
import { call, type Run } from '../support/build.ts'
import { cli, startCli } from '../support/cli.ts'
import { folderOf, save, startDev } from '../support/dev.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const HELLO = 'export const hello = (name) => `Hello ${name}`\n'
const TRIGGERED = `import { fn } from 'svc'
export const act = fn({
  'on-event': 'paid',
  schedule: { cron: '0 3 * * *' },
  webhook: { service: 'shop', path: '/paid' },
}, async () => 1)
`

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The process of the service that uses the data of a folder. */
const serviceOf = (folder: string): number => Number(readFileSync(join(folder, '.svc/lock'), 'utf8'))

const apiOf = (folder: string) => {
  const instance = readInstance(folder)
  assert.ok(instance)
  return openApi(instance.url, instance.key)
}

const ending = suite('the end of svc dev', { timeoutMs: 90_000 })

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  ending(`by ${signal} stops the service and keeps the data`, async () => {
    const folder = folderOf({ 'hello.ts': HELLO })
    const first = startDev(folder)
    await first.next('functions')
    const { run_id } = await call(apiOf(folder), 'hello/hello', 'Ann')
    const service = serviceOf(folder)
    assert.is(await first.stop(signal), 0)
    assert.not(isRunning(service))
    assert.not(existsSync(join(folder, '.svc/dev.json')))
    const second = startDev(folder)
    await second.next('functions')
    assert.is((await apiOf(folder).get<Run>(`/runs/${run_id}`)).result, 'Hello Ann')
    await second.stop()
  })

ending('by SIGKILL leaves no service behind', async () => {
  const folder = folderOf({ 'hello.ts': HELLO })
  const dev = startDev(folder)
  await dev.next('functions')
  const service = serviceOf(folder)
  assert.is(await dev.stop('SIGKILL'), 'SIGKILL')
  await until(() => !isRunning(service), { timeoutMs: 30_000 })
  assert.not(existsSync(join(folder, '.svc/lock')), 'the service has stopped in order')
  assert.is(readInstance(folder), null)
})

ending('by SIGKILL does not prevent the next start, also where another process has got its id', async () => {
  const folder = folderOf({ 'hello.ts': HELLO })
  const first = startDev(folder)
  await first.next('functions')
  await first.stop('SIGKILL')
  const announced = join(folder, '.svc/dev.json')
  const { url, ...others } = JSON.parse(readFileSync(announced, 'utf8')) as { url: string }
  writeFileSync(announced, JSON.stringify({ ...others, url, pid: process.pid }))
  const second = startDev(folder)
  await second.next('functions')
  assert.not(readFileSync(announced, 'utf8').includes(`"pid":${process.pid}`))
  await second.stop()
})

ending('comes with the end of its service', async () => {
  const folder = folderOf({ 'hello.ts': HELLO })
  const dev = startDev(folder)
  await dev.next('functions')
  process.kill(serviceOf(folder), 'SIGKILL')
  assert.is(await dev.ended, 1)
  assert.match(dev.err(), /has ended|does not answer/)
})

ending('of one that cannot start leaves the announcement and the log of the other', async () => {
  const folder = folderOf({ 'hello.ts': HELLO })
  const [announced, log] = [join(folder, '.svc/dev.json'), join(folder, '.svc/dev.log')]
  const first = startDev(folder)
  await first.next('functions')
  const [own, before] = [readFileSync(announced, 'utf8'), readFileSync(log, 'utf8')]
  assert.match(before, 'is ready')
  // It runs on another machine that shares the folder, so the second one sees neither its process nor its lock.
  const seen = JSON.stringify({ ...(JSON.parse(own) as object), pid: spawnSync('true').pid })
  writeFileSync(announced, seen)
  rmSync(join(folder, '.svc/dev.lock'))
  const second = startDev(folder)
  assert.is(await second.ended, 1)
  assert.match(second.err(), 'is in use by process')
  assert.is(readFileSync(announced, 'utf8'), seen)
  assert.ok(readFileSync(log, 'utf8').startsWith(before))
  writeFileSync(announced, own)
  await first.stop()
  assert.not(existsSync(announced))
})

ending('of an ephemeral service removes its data', async () => {
  const folder = folderOf({ 'hello.ts': HELLO })
  const TMPDIR = tempDir() // other tests have ephemeral services in the shared one
  const folders = () => readdirSync(TMPDIR).filter((name) => name.startsWith('svc-dev-'))
  const dev = startDev(folder, ['--ephemeral'], { TMPDIR })
  assert.is((await dev.next('ready'))['data'], null)
  await dev.next('functions')
  assert.equal(readdirSync(join(folder, '.svc')).sort(), ['.gitignore', 'dev.json', 'dev.lock'])
  assert.is(folders().length, 1)
  await dev.stop()
  assert.equal(folders(), [])
})

const ephemeral = suite('the temporary folder of svc dev --ephemeral', { timeoutMs: 180_000 })

/** Starts an ephemeral `svc dev`, with its temporary folder and its service. */
const startEphemeral = async (tmp: string) => {
  const before = new Set(readdirSync(tmp))
  const folder = folderOf({ 'hello.ts': HELLO })
  const dev = startDev(folder, ['--ephemeral'], { TMPDIR: tmp })
  await dev.next('functions')
  const [name = ''] = readdirSync(tmp).filter((each) => each.startsWith('svc-dev-') && !before.has(each))
  const data = join(tmp, name)
  return { dev, folder, data, service: Number(readFileSync(join(data, 'lock'), 'utf8')) }
}

ephemeral('is removed by the next start if its processes were killed, and no other is', async () => {
  const tmp = tempDir()
  const foreign = join(tmp, 'svc-dev-foreign')
  mkdirSync(foreign)
  const elsewhere = tempDir()
  writeFileSync(join(elsewhere, 'owner.db'), '')
  symlinkSync(elsewhere, join(tmp, 'svc-dev-link'))
  const damaged = join(tmp, 'svc-dev-damaged')
  mkdirSync(damaged)
  writeFileSync(join(damaged, 'owner.db'), 'x'.repeat(5000))

  const live = await startEphemeral(tmp)
  const dead = await startEphemeral(tmp)
  process.kill(dead.service, 'SIGSTOP')
  assert.is(await dead.dev.stop('SIGKILL'), 'SIGKILL')

  const second = await startEphemeral(tmp)
  assert.ok(existsSync(dead.data), 'its service has not ended')
  assert.is(await second.dev.stop(), 0)
  process.kill(dead.service, 'SIGKILL')
  await until(() => !isRunning(dead.service) || undefined)
  assert.ok(existsSync(dead.data))

  const third = await startEphemeral(tmp)
  assert.not(existsSync(dead.data), 'both processes were killed')
  assert.equal(
    readdirSync(tmp)
      .filter((name) => name.startsWith('svc-dev-'))
      .sort(),
    ['svc-dev-damaged', 'svc-dev-foreign', 'svc-dev-link', basename(live.data), basename(third.data)].sort(),
  )
  assert.ok(existsSync(join(elsewhere, 'owner.db')))
  const { run_id } = await call(apiOf(live.folder), 'hello/hello', 'Ann')
  assert.is((await apiOf(live.folder).get<Run>(`/runs/${run_id}`)).result, 'Hello Ann')
  for (const { dev, data } of [live, third]) {
    assert.is(await dev.stop(), 0)
    assert.not(existsSync(data))
  }
})

ephemeral('is removed by a start that keeps its own data', async () => {
  const tmp = tempDir()
  const dead = await startEphemeral(tmp)
  assert.is(await dead.dev.stop('SIGKILL'), 'SIGKILL')
  await until(() => !isRunning(dead.service) || undefined, { timeoutMs: 30_000 })
  const dev = startDev(folderOf({ 'hello.ts': HELLO }), [], { TMPDIR: tmp })
  await dev.next('functions')
  assert.not(existsSync(dead.data))
  assert.is(await dev.stop(), 0)
})
ending.run()
ephemeral.run()

const start = suite('the start of svc dev', { timeoutMs: 90_000 })

start('with an error waits for the save that repairs it', async () => {
  const folder = folderOf({ 'hello.ts': 'export const hello = (\n' })
  const dev = startDev(folder)
  const failed = await dev.next('failed')
  assert.is(failed['live'], null)
  assert.equal(
    (failed['messages'] as { file: string }[]).map(({ file }) => file),
    ['hello.ts'],
  )
  save(folder, 'hello.ts', HELLO)
  await dev.next('live')
  assert.is((await call(apiOf(folder), 'hello/hello', 'Bo')).result, 'Hello Bo')
  await dev.stop()
})

start('in a folder without functions waits for the first one', async () => {
  const folder = folderOf({ 'package.json': '{"name":"empty"}' })
  const dev = startDev(folder)
  assert.match(JSON.stringify((await dev.next('failed'))['messages']), 'expected modules')
  save(folder, 'data.ts', 'export const one = 1\n')
  assert.match(JSON.stringify((await dev.next('failed'))['messages']), /function/)
  save(folder, 'hello.ts', HELLO)
  assert.equal((await dev.next('live'))['changes'], { added: ['hello/hello'], removed: [], changed: [] })
  await dev.stop()
})

start('keeps its keys and data out of git', async () => {
  const folder = folderOf({ 'hello.ts': HELLO })
  const dev = startDev(folder)
  await dev.next('functions')
  await dev.stop()
  spawnSync('git', ['init'], { cwd: folder })
  const { stdout } = spawnSync('git', ['status', '--porcelain', '-uall'], { cwd: folder, encoding: 'utf8' })
  assert.is(stdout, '?? hello.ts\n')
})

start('with wrong settings waits until they are right', async () => {
  const folder = folderOf({ 'hello.ts': HELLO, 'package.json': '{"svc":{"projekt":"a"}}' })
  const dev = startDev(folder)
  assert.match(JSON.stringify((await dev.next('failed'))['messages']), 'did you mean project?')
  save(folder, 'package.json', '{"svc":{"project":"right"}}')
  assert.is((await dev.next('functions'))['project'], 'right')
  await dev.stop()
})

start('in two folders makes two instances; a busy port is the next one', async () => {
  const folders = [folderOf({ 'one.ts': HELLO }), folderOf({ 'two.ts': HELLO })] as const
  const first = startDev(folders[0])
  const { url } = await first.next('ready')
  const taken = new URL(String(url)).port
  const second = startDev(folders[1], ['--port', taken])
  const port = Number(new URL(String((await second.next('ready'))['url'])).port)
  assert.ok(port > Number(taken), `${port} after ${taken}`)
  await Promise.all([first.next('functions'), second.next('functions')])
  assert.is((await call(apiOf(folders[0]), 'one/hello', 'A')).result, 'Hello A')
  assert.is((await call(apiOf(folders[1]), 'two/hello', 'B')).result, 'Hello B')
  await Promise.all([first.stop(), second.stop()])
})

start('prints for people without escape sequences where there is no terminal', async () => {
  const hostile = '\u001b[31m.ts'
  const folder = folderOf({ 'src/hello.ts': HELLO, [`src/${hostile}`]: HELLO })
  const dev = startCli(['dev', folder, '--port', '0'], { env: EMBEDDED })
  await dev.shows('no build is live; waiting for the next save')
  rmSync(join(folder, 'src', hostile))
  await dev.shows('npx svc runs')
  assert.match(dev.out(), /svc is ready in \d+ ms; Ctrl-C stops it\n {2}API {8}http:\/\/127\.0\.0\.1:\d+\n/)
  assert.not.ok((dev.out() + dev.err()).includes('\u001b'))
  dev.process.kill('SIGINT')
  assert.is(await dev.ended, 0)
})

start('names what starts a function in the words of svc build', async () => {
  const folder = folderOf({ 'src/hello.ts': HELLO, 'src/shop.ts': TRIGGERED })
  const dev = startCli(['dev', folder, '--port', '0'], { env: EMBEDDED })
  await dev.shows('npx svc runs')
  const built = await cli(['build', folder])
  dev.process.kill('SIGINT')
  assert.is(await dev.ended, 0)
  const functionsIn = (out: string) =>
    out.split('\n').flatMap((line) => /^ *(\w+\/\w+) {2,}(.+)$/.exec(line)?.slice(1).join(' ') ?? [])
  assert.equal(functionsIn(built.out), [
    'hello/hello call',
    'shop/act event paid, schedule 0 3 * * * UTC, webhook POST shop/paid',
  ])
  assert.equal(functionsIn(dev.out()), functionsIn(built.out))
})

start('refuses a folder that does not exist, and a wrong port', async () => {
  const missing = await cli(['dev', '/does/not/exist'])
  assert.equal([missing.code, missing.err], [1, 'svc: FOLDER: expected a folder, got /does/not/exist\n'])
  const port = await cli(['dev', '--port', '70000'])
  assert.equal(
    [port.code, port.err],
    [2, 'svc: --port: expected a whole number from 0 to 65535, got 70000\n'],
  )
})
start.run()
