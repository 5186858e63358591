import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { deploy } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import { folderOf } from '../support/dev.ts'
import { EMBEDDED } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { noPseudoTerminal, startOnTerminal } from '../support/pseudoTerminal.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const NAME = 'svc on a pseudo-terminal'
const problem = noPseudoTerminal()
if (problem) notHere(NAME, problem)
else {
  const server = await spawnServer()
  await deploy(server.api, 'work', { 'work.ts': 'export const one = () => 1\n' })
  const env = { SVC_URL: server.url, SVC_KEY: server.api.key }
  await cliJson(['run', 'work/one'], { env })
  const onTerminal = (args: readonly string[], more: Readonly<Record<string, string>> = {}, redirect = '') =>
    startOnTerminal(args, { env: { ...env, ...more }, redirect })
  const keysOf = async () =>
    (await cliJson<{ key: string }[]>(['secrets', 'list', '--project', 'work'], { env })).map(
      ({ key }) => key,
    )

  const test = suite(NAME, { timeoutMs: 180_000 })

  test('colours a result, and no file, pipe, terminal without colours or with NO_COLOR', async () => {
    const green = '\x1b[32msucceeded\x1b[39m'
    const shown = await onTerminal(['runs']).end()
    assert.is(shown.code, 0)
    assert.match(shown.text, green)
    for (const variables of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      const { code, text } = await onTerminal(['runs'], variables).end()
      assert.is(code, 0)
      assert.match(text, 'succeeded')
      assert.not.match(text, '\x1b[')
    }
    const file = join(tempDir(), 'out')
    assert.is((await onTerminal(['runs'], {}, `> '${file}'`).end()).code, 0)
    for (const text of [readFileSync(file, 'utf8'), (await cli(['runs'], { env })).out]) {
      assert.match(text, 'succeeded')
      assert.not.match(text, '\x1b')
    }
  })

  test('shows the progress of an upload, and removes it; elsewhere there is none', async () => {
    const [file, out, err] = ['upload.bin', 'out', 'err'].map((name) => join(tempDir(), name)) as [
      string,
      string,
      string,
    ]
    writeFileSync(file, Buffer.alloc(3_000_000, 'x'))
    const args = ['files', 'put', file, 'upload.bin']
    const shown = await onTerminal([...args, '--json'], {}, `> '${out}'`).end()
    assert.is(shown.code, 0)
    assert.match(shown.text, `\r\x1b[K[${'#'.repeat(20)}]  100 %  3,000,000 of 3,000,000 bytes`)
    assert.ok(shown.text.endsWith('\r\x1b[K'), JSON.stringify(shown.text.slice(-100)))
    assert.is((JSON.parse(readFileSync(out, 'utf8')) as { size: number }).size, 3_000_000)
    const redirected = await onTerminal(args, {}, `2> '${err}'`).end()
    assert.equal([redirected.code, redirected.text], [0, 'Stored upload.bin: 2.9 MiB\r\n'])
    assert.is(readFileSync(err, 'utf8'), '')
    assert.equal(await cli(args, { env }), { code: 0, out: 'Stored upload.bin: 2.9 MiB\n', err: '' })
  })

  test('shows the progress of a deployment whose build is large, and removes it', async () => {
    const folder = folderOf({
      'package.json': '{"name":"large","svc":{"assets":["data.bin"]}}',
      'one.ts': 'export const one = () => 1\n',
    })
    writeFileSync(join(folder, 'data.bin'), randomBytes(3_000_000)) // which no zip makes smaller
    const out = join(tempDir(), 'out')
    const shown = await onTerminal(['deploy', folder, '--json'], {}, `> '${out}'`).end()
    assert.is(shown.code, 0)
    const bars = shown.text.split('\r\x1b[K')
    assert.ok(
      bars.some((bar) => /^\[[#.]{20}\] {2}\d+ % {2}[\d,]+ of 3,\d{3},\d{3} bytes/.test(bar)),
      JSON.stringify(bars),
    )
    assert.ok(shown.text.endsWith('\r\x1b[K'), JSON.stringify(shown.text.slice(-100)))
    assert.is((JSON.parse(readFileSync(out, 'utf8')) as { project: string }).project, 'large')
  })

  test('asks before it deletes, and elsewhere asks nothing', async () => {
    await cli(['secrets', 'set', 'KEY', '--project', 'work'], { env, input: 'v' })
    const args = ['secrets', 'remove', 'KEY', '--project', 'work']
    for (const [answer, code, left] of [
      ['n\n', 1, ['KEY']],
      ['\n', 1, ['KEY']],
      ['y\n', 0, []],
    ] as const) {
      const asked = onTerminal(args)
      await asked.shows('Delete KEY of work? [y/N] ')
      asked.type(answer)
      assert.is((await asked.end()).code, code)
      assert.equal(await keysOf(), left)
    }
    const piped = await cli(args, { env, input: 'y\n' })
    assert.equal([piped.code, piped.out], [2, ''])
    assert.is(piped.err, 'svc: the confirmation needs a terminal: repeat the command with --yes\n')
    for (const redirect of ['< /dev/null', '2> /dev/null'])
      assert.equal(
        await onTerminal(args, {}, redirect)
          .end()
          .then(({ code, text }) => [code, text.includes('[y/N]')]),
        [2, false],
      )
  })

  test('does not show a secret that is typed', async () => {
    const asked = onTerminal(['secrets', 'set', 'TYPED', '--project', 'work'])
    await asked.shows('Value of TYPED of work: ')
    asked.type('my-secret\r')
    const { code, text } = await asked.end()
    assert.is(code, 0)
    assert.not.match(text, 'my-secret')
    assert.match(text, 'Stored TYPED of work')
  })

  test('reads the keys of svc dev: c clears the screen, and q stops the service', async () => {
    const folder = folderOf({ 'hello.ts': 'export const hello = () => 1\n' })
    const dev = startOnTerminal(['dev', folder, '--port', '0', '--ephemeral'], {
      env: { ...EMBEDDED, TMPDIR: tempDir() },
    })
    await dev.shows('hello/hello')
    assert.not.match(dev.text(), '\x1b[2J')
    dev.type('xc')
    await dev.shows('\x1b[2J\x1b[3J\x1b[H')
    dev.type('q')
    assert.is((await dev.end()).code, 0)
  })

  test('replays the last failed run of svc dev with r, which does nothing before one failed', async () => {
    const folder = folderOf({ 'fail.ts': "export const fail = () => { throw new Error('it fails') }\n" })
    const dev = startOnTerminal(['dev', folder, '--port', '0', '--ephemeral'], {
      env: { ...EMBEDDED, TMPDIR: tempDir() },
    })
    await dev.shows('npx svc runs')
    dev.type('r')
    const failures = () => dev.text().split('fail/fail  failed').length - 1
    const failed = await cli(['run', 'fail/fail'], { cwd: folder })
    assert.is(failed.code, 1)
    await until(() => failures() === 1, { timeoutMs: 60_000 })
    dev.type('r')
    await until(() => failures() === 2, { timeoutMs: 60_000 })
    const runs = await cliJson<{ status: string }[]>(['runs'], { cwd: folder })
    assert.equal(
      runs.map(({ status }) => status),
      ['failed', 'failed'],
    )
    dev.type('q')
    assert.is((await dev.end()).code, 0)
  })

  test.after(() => server.stop())
  test('stops a service in order when the terminal is closed', async () => {
    const dataDir = tempDir()
    const lock = join(dataDir, 'lock')
    const service = startOnTerminal(['serve'], { env: { ...EMBEDDED, PORT: '0', SVC_DATA_DIR: dataDir } })
    await service.shows('is ready on')
    const pid = Number(readFileSync(lock, 'utf8'))
    service.hangUp()
    await until(() => !existsSync(`/proc/${pid}`), { timeoutMs: 60_000 })
    assert.not(existsSync(lock)) // a service that was killed leaves it
  })

  test.run()
}
