import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Run } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import { cli, startCli } from '../support/cli.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { given, json, seeRun, server, svc, type Published } from './workService.ts'

const run = suite('svc run', { timeoutMs: 120_000 })

run('prints the result of the function as JSON', async () => {
  assert.equal(await svc('run', 'work/add', '2', '-3'), { code: 0, out: '-1\n', err: '' })
  const file = join(tempDir(), 'value.json')
  writeFileSync(file, '{"deep": ["x"]}')
  const { out } = await svc('run', 'work/echo', `@${file}`, '--project', 'work')
  assert.equal(JSON.parse(out), { deep: ['x'] })
})

run('with the same idempotency key is one run, which every repetition prints', async () => {
  const key = newId()
  const ids = await Promise.all(
    [1, 2, 3].map(
      async () => (await json<Run>('run', 'work/add', '1', '2', '--idempotency-key', key)).run_id,
    ),
  )
  assert.is(new Set(ids).size, 1)
  const other = await svc('run', 'work/add', '3', '--idempotency-key', key)
  assert.equal([other.code, /was used for another request/.test(other.err)], [1, true])
})

run('prints the run with --json', async () => {
  const done = await json<Run>('run', 'work/add', '2', '3')
  assert.equal([done.fn, done.status, done.result], ['work/add', 'succeeded', 5])
})

run('escapes what a terminal would obey', async () => {
  assert.is((await svc('run', 'work/greet')).out, '"a \\u001b[2J b"\n')
})

run('reads an argument from the standard input', async () => {
  const { out } = await cli(['run', 'work/echo', '-'], { ...given, input: '"äöü"\n' })
  assert.is(out, '"äöü"\n')
  const empty = await cli(['run', 'work/echo', '-'], given)
  assert.equal([empty.code, empty.err], [2, 'svc: expected JSON in the standard input\n'])
  const { code, err } = await svc('run', 'work/echo', '-', '-')
  assert.equal([code, err], [2, 'svc: args: expected - once, because the standard input is read once\n'])
})

run('ends with 1 for a failed run, and names its place in the source', async () => {
  const { code, out, err } = await svc('run', 'work/fail', '"\\u001b[2Jno"')
  assert.equal([code, err], [1, ''])
  const [head, source, cause, id] = out.split('\n')
  assert.is(head, 'work.ts:6:9 TypeError: \\u001b[2Jno')
  assert.is(source, "  6 |   throw new TypeError(text, { cause: new Error('the cause') })")
  assert.is(cause, '  caused by the cause')
  assert.match(id ?? '', /^run [0-9a-f-]{36}$/)
})

run('ends with 1 for a run that is cancelled', async () => {
  const waiting = startCli(['run', 'work/hang'], given)
  const id = await until(async () => {
    const [first] = await json<Run[]>('runs', '--status', 'running')
    return first?.run_id
  })
  assert.is((await svc('cancel', id)).out, `Requested the cancellation of ${id}\n`)
  assert.is(await waiting.ended, 1)
  assert.match(waiting.out(), new RegExp(`cancelled.*\\nrun ${id}\\n${server.url}/ui/runs/${id}\\n$`))
  const again = { code: 1, out: '', err: 'svc: the run has ended: it is cancelled\n' }
  assert.equal(await svc('cancel', id), again)
})

run('cancels the next attempt of a run that has failed', async () => {
  const { event_id } = await json<Published>('send', 'fallible')
  const failed = await until(async () => {
    const runs = await json<Run[]>('runs', '--event', event_id)
    return runs.length === 2 ? runs.find(({ attempt }) => attempt === 1) : undefined
  })
  const id = failed.run_id
  assert.is((await svc('cancel', id)).out, `Requested the cancellation of ${id}\n`)
  await until(async () => (await json<Run[]>('runs', '--chain', id, '--status', 'cancelled')).length > 0)
  assert.is((await svc('cancel', id)).err, 'svc: the run has ended: it is failed\n')
})

run('stops to wait when it is interrupted, with 1, and the run continues', async () => {
  const waiting = startCli(['run', 'work/hang'], given)
  const id = await until(async () => (await json<Run[]>('runs', '--status', 'running'))[0]?.run_id)
  waiting.process.kill('SIGINT')
  assert.equal([await waiting.ended, waiting.err()], [1, 'svc: interrupted\n'])
  assert.is((await json<Run>('show', id)).status, 'running')
  await svc('cancel', id)
})

for (const [args, code, expected] of [
  [['run', 'work/nope'], 1, /^svc: No function work\/nope is deployed; run svc functions to list all\n$/],
  [
    ['run', 'work/ehco', '1'],
    1,
    /^svc: No function work\/ehco is deployed; did you mean work\/echo\? Run .*\n$/,
  ],
  [['run', 'work/add', 'x'], 2, /^svc: args: expected JSON.*got x \(a text is JSON in quotes: '"text"'\)\n$/],
  [['run', 'work/add', '@/nope.json'], 2, /^svc: args: \/nope\.json: cannot be read \(ENOENT\): /],
  [
    ['run', 'work/add', '--project', 'nope'],
    1,
    /^svc: --project: expected one of (?=.*\bwork\b)(?=.*\bempty\b).*, got nope; name one of them, or leave it out\n$/,
  ],
  [['run', 'work/add', '--project', 'wrok'], 1, /^svc: --project: .*got wrok; did you mean work\?\n$/],
  [['run', 'work/add', '--project', '..'], 1, /^svc: --project: expected one of .*, got \.\.; name one/],
  [['run', 'work/add', '--project', '\x1b[2J'], 1, /^svc: --project: .*, got \\u001b\[2J; name one/],
  [
    ['run', 'work/add', '--project', 'empty'],
    1,
    /^svc: No function work\/add is deployed in the project empty; leave --project out, or run svc functions to list all\n$/,
  ],
  [['show', 'abc'], 2, /^svc: run: expected the full id of a run \(a UUID\), got abc\n$/],
  [['runs', '--limit', '0'], 2, /^svc: --limit: expected a whole number from 1 to 999999, got 0\n$/],
  [['runs', '--status', 'done'], 2, /^svc: --status: expected running, succeeded, failed.*got done\n$/],
  [['runs', '--since', '2'], 2, /^svc: --since: expected a time/],
  [['send', 'svc:nope'], 1, /reserved/],
] as const)
  run(`refuses svc ${args.join(' ')} with ${code}`, async () => {
    const ended = await svc(...args)
    assert.equal([ended.code, ended.out], [code, ''])
    assert.match(ended.err, expected)
  })

run('starts the function of the project of the folder, and none of several projects elsewhere', async () => {
  for (const name of ['first', 'second'])
    await deploy(server.api, name, { 'm.ts': `export const thr = () => '${name}'\n` })
  const cwd = tempDir()
  const ran = (...args: string[]) => cli(['run', 'm/thr', ...args], { ...given, cwd })
  const refused = await ran()
  assert.is(refused.code, 1)
  assert.match(
    refused.err,
    /^svc: --project: expected one of (first, second|second, first), which all have m\/thr\n$/,
  )
  assert.is((await ran('--project', 'first')).out, '"first"\n')
  writeFileSync(join(cwd, 'package.json'), '{"name": "second"}')
  assert.is((await ran()).out, '"second"\n')
  writeFileSync(join(cwd, 'package.json'), '{"name": "work"}')
  assert.is((await ran()).code, 1, 'the project of the folder has no such function')
})

run('names its own arguments also with a key that cannot list what exists', async () => {
  const { token } = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'event:*': ['create'], 'build:*': ['execute'] },
  })
  const env = { SVC_URL: server.url, SVC_KEY: token }
  const refused = async (...args: string[]) => (await cli(['run', ...args], { env })).err
  assert.is(await refused('work/nope'), 'svc: ref: no function "work/nope" in the deployed builds\n')
  assert.is(
    await refused('work/add', '--project', 'nope'),
    'svc: --project: expected the id or name of a project\n',
  )
})

run('has the functions that svc functions lists', async () => {
  const listed = await json<{ fn: string; project: string }[]>('functions')
  assert.ok(listed.some(({ fn, project }) => fn === 'work/echo' && project === 'work'))
  const { out } = await svc('functions', '--project', 'work')
  assert.match(out, /^PROJECT +FUNCTION +STARTED BY\n/)
  assert.match(out, /^work +work\/talk +event talk\n/m)
})

for (const name of ['show', 'logs', 'cancel'])
  run(`names the unknown run of svc ${name}, and its page`, async () => {
    const id = newId()
    assert.equal(await svc(name, id), { code: 1, out: '', err: `svc: No run ${id}\n${seeRun(id)}` })
  })

run('names the unknown run of svc replay', async () => {
  const id = newId()
  assert.equal(await svc('replay', id), { code: 1, out: '', err: `svc: No run ${id}\n` })
})

run.after(() => server.stop())

run.run()
