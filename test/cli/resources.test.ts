import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { writeInstance } from '../../src/cli/instance.ts'
import type { Run } from '../../src/client/index.ts'
import { deploy } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import { openApi } from '../support/http.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const FILES = {
  'work.ts': `import { context, fn } from 'svc'
export const key = fn({ context: ['KEY'] }, async () => (await context('KEY')).split('').reverse().join('')) // the value itself is masked
export const nightly = fn({ schedule: '0 3 * * *' }, () => {})
export const paid = fn({ webhook: { service: 'shop', path: '/paid' } }, () => 'ok')
export const fail = () => { throw new Error('a special text') }
`,
}

const server = await spawnServer()
await deploy(server.api, 'work', FILES)
const env = { SVC_URL: server.url, SVC_KEY: server.api.key }
const svc = (...args: readonly string[]) => cli(args, { env })
const json = <T>(...args: readonly string[]) => cliJson<T>(args, { env })

const test = suite('the resources of an environment', { timeoutMs: 120_000 })

test('are schedules and webhooks, with the URLs that run their functions', async () => {
  assert.match(
    (await svc('schedules')).out,
    /^PROJECT +FUNCTION +CRON +TIMEZONE +NEXT +LAST\nwork +work\/nightly +0 3 \* \* \* +UTC +[-\d]+T03:00:00.000Z +-\n$/,
  )
  const [webhook, ...more] = await json<{ url: string; project: string }[]>('webhooks', '--project', 'work')
  assert.equal([webhook?.project, more], ['work', []])
  assert.is(await (await fetch(webhook?.url ?? '', { method: 'POST' })).json(), 'ok')
  const { code, err } = await svc('schedules', '--project', 'nope')
  assert.is(code, 1)
  assert.match(err, 'nope')
})

test('are schedules that can be paused, resumed and started now', async () => {
  assert.is((await svc('schedules', 'pause', 'work/nightly')).out, 'Paused work/nightly\n')
  assert.match((await svc('schedules')).out, / UTC +paused +-\n$/)
  const { run_id } = await json<{ run_id: string }>('schedules', 'run', 'work/nightly')
  await until(async () => (await server.api.send('GET', `/runs/${run_id}`)).status === 200)
  const [nightly] = await json<{ last_run_id: string }[]>('schedules', 'list', '--project', 'work')
  assert.is(nightly?.last_run_id, run_id)
  assert.match(
    (await svc('schedules', 'resume', 'work/nightly')).out,
    /^Resumed work\/nightly: the next tick is at [-\d]+T03:00:00.000Z\n$/,
  )
  const { code, err } = await svc('schedules', 'pause', 'work/paid')
  assert.equal([code, err], [1, 'svc: work/paid has no schedule; run svc schedules to list all\n'])
})

test('are secrets, whose values come from the standard input and are never printed', async () => {
  const set = (value: string | Buffer) =>
    cli(['secrets', 'set', 'KEY', '--description', 'd'], { env, input: value })
  assert.equal(await set('one\ntwo\n'), { code: 0, out: 'Stored KEY of work\n', err: '' })
  assert.is((await json<Run>('run', 'work/key')).result, 'owt\neno')
  await set('three')
  assert.is((await json<Run>('run', 'work/key')).result, 'eerht')
  assert.equal(await svc('secrets', 'ls'), await svc('secrets', 'list'))
  const listed = await svc('secrets', 'list', '--json')
  assert.match(listed.out, '"key":"KEY","description":"d"')
  assert.not.match(listed.out, 'three')
  const other = await set(Buffer.from('\u00fc', 'latin1')) // another encoding, whose letters would be lost
  assert.equal([other.code, other.err], [2, 'svc: standard input: expected text in UTF-8\n'])
  const empty = await set('')
  assert.equal([empty.code, empty.err], [2, 'svc: expected a value in the standard input, got nothing\n'])
  assert.is((await svc('secrets', 'remove', 'KEY')).code, 2)
  assert.is((await svc('secrets', 'rm', 'KEY', '--yes')).out, 'Deleted KEY of work\n')
  assert.equal(await json('secrets', 'list'), [])
})

test('of the folder belong to the project of its instance; else --project is required if there are several', async () => {
  await server.api.post('/projects', { name: 'other' })
  const { code, err } = await svc('secrets', 'list')
  assert.equal([code, err], [1, 'svc: --project: expected one of other, work\n'])
  const folder = tempDir()
  writeInstance(folder, {
    url: server.url,
    key: server.api.key,
    project: 'other',
    dataDir: null,
    pid: process.pid,
  })
  const set = await cli(['secrets', 'set', 'A'], {
    env: { XDG_CONFIG_HOME: folder },
    cwd: folder,
    input: 'x',
  })
  assert.equal([set.out, set.err], ['Stored A of other\n', ''])
})

test('of a folder with settings never belong to another project', async () => {
  const folder = tempDir()
  const only = await server.api.post('/projects', { name: 'shop' })
  assert.ok(only)
  const at = (svc: object) =>
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'shop', ...svc }))
  const set = () => cli(['secrets', 'set', 'A'], { env, cwd: folder, input: 'x' })
  at({})
  assert.equal(await set(), { code: 0, out: 'Stored A of shop\n', err: '' })
  at({ name: 'store', svc: {} })
  const { code, err } = await set()
  assert.is(code, 1)
  assert.match(
    err,
    /^svc: --project: expected one of .*shop.*; store of this folder is not in the environment: deploy it first\n$/,
  )
})

test('are files, which are uploaded, listed, downloaded and deleted', async () => {
  const folder = tempDir()
  const [from, to] = [join(folder, 'from.bin'), join(folder, 'to.bin')]
  const content = Buffer.alloc(300_000, 'content ')
  writeFileSync(from, content)
  const put = await svc('files', 'put', from, 'reports/a.bin', '--type', 'text/plain')
  assert.equal(put, { code: 0, out: 'Stored reports/a.bin: 293 KiB\n', err: '' })
  assert.match((await svc('files', 'list', 'reports/')).out, /\nreports\/a\.bin +293 KiB +text\/plain /)
  assert.equal(await json('files', 'list', 'none/'), [])
  assert.is((await svc('files', 'get', 'reports/a.bin', to)).code, 0)
  assert.ok(readFileSync(to).equals(content))
  assert.match((await svc('files', 'get', 'reports/a.bin', to)).err, 'exists already')
  const dash = await svc('files', 'get', 'reports/a.bin', '-')
  assert.equal([dash.code, dash.err], [2, 'svc: file: expected the name of a file, got -\n'])
  assert.is((await cli(['files', 'get', 'reports/a.bin'], { env, cwd: folder })).code, 0)
  assert.ok(existsSync(join(folder, 'a.bin')))
  assert.is((await svc('files', 'remove', 'reports/a.bin', '--yes')).out, 'Deleted reports/a.bin\n')
  for (const args of [
    ['get', 'reports/a.bin', join(folder, 'none')],
    ['remove', 'reports/a.bin', '--yes'],
  ])
    assert.equal(await svc('files', ...args), { code: 1, out: '', err: 'svc: No file reports/a.bin\n' })
  assert.not(existsSync(join(folder, 'none')))
  const absent = join(folder, 'absent')
  assert.is((await svc('files', 'put', absent)).err, `svc: file: ${absent} does not exist\n`)
  const dotted = await svc('files', 'put', from, './a.bin')
  assert.equal(
    [dotted.code, dotted.err],
    [
      2,
      'svc: expected a path whose segments are between single slashes, none of them "." or "..", got "./a.bin"\n',
    ],
  )
  assert.is((await svc('files', 'put', folder)).err, `svc: file: ${folder} is not a file\n`)
})

test('are sessions, which are valid until they are revoked', async () => {
  const permissions = '{"env:*": ["read"]}'
  const created = await json<{ session_id: string; token: string }>(
    'sessions',
    'create',
    '--permissions',
    permissions,
    '--expires-in',
    '30m',
  )
  const status = async () => (await openApi(server.url, created.token).send('GET', '/env')).status
  assert.is(await status(), 200)
  assert.match((await svc('sessions', 'list')).out, created.session_id)
  assert.match((await svc('sessions')).out, created.session_id)
  assert.is((await svc('sessions', 'revoke', created.session_id, '--yes')).code, 0)
  assert.is(await status(), 401)
  assert.is((await svc('sessions', 'create')).code, 2)
})

test('are runs, found by their function and error', async () => {
  await svc('run', 'work/fail')
  const found = await json<Run[]>(
    'runs',
    '--function',
    'work/fail',
    '--text',
    'SPECIAL',
    '--project',
    'work',
    '--final',
  )
  assert.equal(
    found.map(({ fn, status }) => [fn, status]),
    [['work/fail', 'failed']],
  )
  assert.equal(await json('runs', '--error', 'timeout'), [])
  const [first] = found
  for (const [option, id] of [
    ['--chain', first?.run_id],
    ['--event', first?.event_id],
    ['--stream', first?.stream_id],
  ])
    assert.is((await json<Run[]>('runs', option ?? '', id ?? '')).length, 1)
})

test('are projects, which are listed, renamed and deleted', async () => {
  const { project_id } = await server.api.post<{ project_id: string }>('/projects', { name: 'gone' })
  assert.match((await svc('projects')).out, new RegExp(`^NAME +CREATED +ID\\ngone +\\S+Z +${project_id}\\n`))
  assert.is((await svc('projects', 'rename', 'gone', 'went')).out, 'Renamed gone to went\n')
  const taken = await svc('projects', 'rename', 'went', 'work')
  assert.equal([taken.code, taken.out], [1, ''])
  assert.match(taken.err, 'work')
  assert.is((await svc('projects', 'rename', 'went', 'No Name')).code, 2)
  assert.is((await svc('projects', 'delete', 'went')).code, 2) // nothing asks without a terminal
  assert.is((await svc('projects', 'delete', 'went', '--yes')).out, `Deleted project went (${project_id})\n`)
  assert.is((await svc('projects', 'delete', 'went', '--yes')).code, 1)
  assert.not((await json<{ name: string }[]>('projects', 'list')).some(({ name }) => name === 'went'))
})

test('are builds, of which one is deployed', async () => {
  const [build, ...more] = await json<{ build_id: string; project: string; deployed: boolean }[]>('builds')
  assert.equal([build?.project, build?.deployed, more], ['work', true, []])
  assert.match(
    (await svc('builds', '--project', 'work')).out,
    new RegExp(`\\nwork +\\S+Z +release +yes +\\d+ B +${build?.build_id}\\n$`),
  )
  assert.match((await svc('builds', '--project', 'wrok')).err, 'wrok')
})

test.after(() => server.stop())
test.run()
