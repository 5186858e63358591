import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Run, RunExplanation } from '../../src/client/index.ts'
import { newId, timeOf } from '../../src/ids.ts'
import { answering } from '../support/answering.ts'
import { deploy } from '../support/build.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { relaying } from '../support/relaying.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const FILES = {
  'work.ts': `import { context, currentRun, emit, fn } from 'svc'
export const add = (a: number, b: number) => a + b
export const echo = (value: unknown) => value
export const greet = () => 'a \\x1b[2J b'
export const fail = (text: string) => {
  throw new TypeError(text, { cause: new Error('the cause') })
}
export const hang = async () => {
  console.log('first')
  await new Promise((resolve) => setTimeout(resolve, 3_600_000))
}
export const talk = fn({ 'on-event': 'talk' }, async (event: any) => {
  for (const word of event.data.words) await emit('word', word)
  console.log('said', event.data.words.length)
  console.error('\\x1b[2J done')
  return event.data.words.length
})
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 1, delay: 1 } }, () => {
  throw new Error('attempt ' + currentRun().attempt)
})
export const fallible = fn({ 'on-event': 'fallible', retry: { attempts: 1, delay: 1 } }, () => {
  if (currentRun().attempt === 1) throw new Error('broke')
  return hang()
})
`,
}

const server = await spawnServer()
await deploy(server.api, 'work', FILES)
await server.api.post('/projects', { name: 'empty' })
const given = { env: { SVC_URL: server.url, SVC_KEY: server.api.key } }
const svc = (...args: readonly string[]) => cli(args, given)
const json = <T>(...args: readonly string[]) => cliJson<T>(args, given)
/** Where a person sees that a run does not exist, or no longer. */
const seeRun = (id: string): string => `See ${server.url}/ui/runs/${id}\n`
const lines = <T>(out: string): T[] =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T)

interface Published {
  readonly event_id: string
  readonly stream_id: string
  readonly handlers?: number
}

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

const events = suite('svc send', { timeoutMs: 120_000 })

events('publishes an event, and reports the number of its handlers', async () => {
  const sent = await json<Published>('send', 'talk', '{"words": ["a"]}')
  assert.is(sent.handlers, 1)
  const none = await svc('send', 'nobody')
  assert.is(none.code, 0)
  assert.match(none.out, /^published {2}nobody\n/)
  assert.match(none.out, /^handlers {3}none/m)
})

events('publishes nothing for a repetition with the same key', async () => {
  const key = newId()
  const [one, two] = [
    await json<Published>('send', 'talk', '{"words": []}', '--idempotency-key', key),
    await json<Published>('send', 'talk', '{"words": []}', '--idempotency-key', key),
  ]
  assert.is(one.event_id, two.event_id)
})

events('continues a stream', async () => {
  const { stream_id } = await json<Published>('send', 'nobody')
  assert.is((await json<Published>('send', 'nobody', '1', '--stream', stream_id)).stream_id, stream_id)
})

events('with --follow prints what happens until the stream is complete', async () => {
  const { code, out, err } = await svc('send', 'talk', '{"words": ["a", "\\u001b[2J"]}', '--follow')
  assert.equal([code, err], [0, ''])
  const words = out.split('\n').map((line) =>
    line
      .replace(/^\S+Z {2}/, '')
      .split(/ {2,}/)
      .slice(0, 2)
      .join(' '),
  )
  assert.match(words[0] ?? '', /^Published talk/)
  assert.equal(words.slice(1), ['started work/talk', 'data word', 'data word', 'succeeded work/talk', ''])
  const times = out.match(/^\S+Z/gm) ?? []
  assert.equal(times, times.toSorted(), 'live data has the time at which it was stored')
  assert.not.match(out, '\x1b')
})

events('with --follow ends with 1 if a run has failed for the last time', async () => {
  const { code, out } = await svc('send', 'flaky', '--follow', '--json')
  assert.is(code, 1)
  const failed = lines<{ event: string; data: { run: Run } }>(out).filter(({ event }) => event === 'run:fail')
  assert.equal(
    failed.map(({ data }) => data.run.status),
    ['pending_retry', 'failed'],
  )
})

events('with --follow says that no function handles the event', async () => {
  const sent = await svc('send', 'nobody', '--follow')
  assert.equal([sent.code, sent.err], [0, ''])
  assert.match(
    sent.out,
    /^Published nobody {2}.*\nhandlers {2}none: no deployed function has this on-event\n$/,
  )
  const [published, handled] = lines<{ event: string; data: Published & { run_ids?: string[] } }>(
    (await svc('send', 'nobody', '--follow', '--json')).out,
  )
  assert.is(handled?.event, 'event:handled')
  assert.equal([handled?.data.event_id, handled?.data.run_ids], [published?.data.event_id, []])
})

events('with --follow says so in a stream with runs of other events', async () => {
  const { stream_id } = await json<Published>('send', 'talk', '{"words": []}')
  const { code, out } = await svc('send', 'nobody', '--stream', stream_id, '--follow')
  assert.is(code, 0)
  assert.match(out, /\nhandlers {2}none: /)
})

events('with --follow counts no handlers of an event that controls the service', async () => {
  const { stream_id } = await json<Published>('run', 'work/hang', '--no-wait')
  const { run_id } = await until(async () =>
    (await json<Run[]>('runs', '--status', 'running')).find((each) => each.stream_id === stream_id),
  )
  const sent = await svc('send', 'svc:cancel', JSON.stringify({ run_id }), '--follow')
  assert.is(sent.code, 0)
  assert.not.match(sent.out, 'handlers')
})

const reads = suite('svc show, logs, follow and replay', { timeoutMs: 120_000 })

reads('show a run with its result, or with its error and the stack', async () => {
  const failed = await json<Run>('run', 'work/add', '1', '1')
  const shown = await svc('show', failed.run_id)
  assert.match(
    shown.out,
    new RegExp(`^run +${failed.run_id}\nfunction +work/add\nproject +work\nstatus +succeeded\n`),
  )
  assert.match(shown.out, /\nresult\n2\n$/)
  assert.match(shown.out, new RegExp(`\ndashboard +${server.url}/ui/runs/${failed.run_id}\n`))
  const [latest] = await json<Run[]>('runs', '--status', 'failed', '--limit', '1')
  assert.match((await svc('show', latest?.run_id ?? '')).out, /\nwork\.ts:\d+:\d+ .*\n/)
})

reads('explain why a run started and how it ended', async () => {
  const { event_id } = await json<Published>('send', 'talk', '{"words": []}')
  const { run_id } = await until(async () => {
    const { runs } = await json<{ runs: Run[] }>('events', 'show', event_id)
    return runs.find(({ status }) => status === 'succeeded')
  })
  const explained = await json<RunExplanation>('why', run_id)
  assert.equal(explained, await server.api.get<RunExplanation>(`/runs/${run_id}/why`))
  assert.match(explained.why.join(' '), event_id)
  const { why, outcome } = explained
  const page = `${server.url}/ui/runs/${run_id}`
  const shown = await svc('why', run_id)
  assert.equal(shown, { code: 0, out: `${[...why, outcome, page].join('\n')}\n`, err: '' })
  const failed = await json<Run[]>('runs', '--status', 'failed', '--function', 'work/fail', '--limit', '1')
  assert.match((await svc('why', failed[0]?.run_id ?? '')).out, /failed/)
  const id = newId()
  assert.equal(await svc('why', id), { code: 1, out: '', err: `svc: No run ${id}\n${seeRun(id)}` })
  assert.is((await svc('why', '7')).code, 2)
})

reads('list runs with filters, in a table or as JSON', async () => {
  const { out } = await svc('runs', '--status', 'failed', '--since', '1h', '--limit', '2')
  const [titles, ...rows] = out.trimEnd().split('\n')
  assert.match(titles ?? '', /^STARTED +STATUS +FUNCTION +TRY +TIME +ERROR +ID$/)
  assert.is(rows.length, 2)
  for (const row of rows) assert.match(row, / failed +work\//)
  const events_ = await json<Run[]>('runs', '--type', 'event')
  assert.ok(events_.length > 0 && events_.every(({ run_type }) => run_type === 'event'))
})

reads('print the output of a run', async () => {
  const { event_id } = await json<Published>('send', 'talk', '{"words": ["a"]}')
  const shown = await until(async () => {
    const { runs } = await json<{ runs: Run[] }>('events', 'show', event_id)
    return runs[0]?.status === 'succeeded' ? runs[0] : undefined
  })
  const { out } = await svc('logs', shown.run_id)
  assert.equal(
    out.split('\n').map((line) => line.replace(/^\S+Z {2}/, '')),
    ['said 1', '\\u001b[2J done', ''],
  )
  const texts = lines<{ text: string; source: string }>((await svc('logs', shown.run_id, '--json')).out)
  assert.equal(
    texts.map(({ source }) => source),
    ['stdout', 'stderr'],
  )
})

reads('print the output of a running run until its end', async () => {
  const { stream_id } = await json<Published>('run', 'work/hang', '--no-wait')
  const id = await until(
    async () =>
      (await json<Run[]>('runs', '--status', 'running')).find((each) => each.stream_id === stream_id)?.run_id,
  )
  const follower = startCli(['logs', id, '-f'], given)
  await follower.shows('first')
  await svc('cancel', id)
  assert.equal([await follower.ended, follower.err()], [0, ''])
})

reads('run a function again with the same input', async () => {
  const first = await json<Run>('run', 'work/echo', '"again"')
  const second = await json<Run>('replay', first.run_id)
  assert.equal([second.result, second.replay_of], ['again', first.run_id])
  assert.is((await svc('replay', first.run_id)).out, '"again"\n')
})

reads('follow a stream to its end, and the environment until it is interrupted', async () => {
  const follower = startCli(['follow'], given)
  const lasting = startCli(['follow', '--from', 'start', '--json'], given)
  await lasting.shows('run:')
  const { stream_id } = await json<Published>('send', 'talk', '{"words": ["b"]}')
  const ended = await svc('follow', stream_id)
  assert.is(ended.code, 0)
  assert.match(ended.out, /data +word {2}"b"/)
  await until(async () => {
    await svc('send', 'talk', '{"words": []}') // until one is published after the follower has begun
    return /succeeded {2}work\/talk/.test(follower.out()) || undefined
  })
  follower.process.kill('SIGINT')
  lasting.process.kill('SIGINT')
  assert.equal([await follower.ended, follower.err()], [0, ''])
  assert.is(await lasting.ended, 0)
  assert.ok(lines<{ event: string }>(lasting.out()).some(({ event }) => event === 'run:stop'))
})

reads('follow the environment without a request for each run', async () => {
  const asked: string[] = []
  for (const n of [1, 2, 3]) await json<Run>('run', 'work/add', `${n}`, '0')
  const { event_id } = await json<Published>('send', 'flaky')
  await until(async () => {
    const { runs } = await json<{ runs: Run[] }>('events', 'show', event_id)
    return runs.find(({ attempt, status }) => attempt === 2 && status === 'failed')
  })
  await answering(relaying(server.url, asked), async (url) => {
    const env = { ...given.env, SVC_URL: url }
    const follower = startCli(['follow', '--from', 'start'], { env })
    await until(() => /work\.ts:\d+:\d+ attempt 2\n/.test(follower.out()) || undefined)
    follower.process.kill('SIGINT')
    assert.equal([await follower.ended, follower.err()], [0, ''])
    const out = follower.out()
    const ends = out
      .split('\n')
      .filter((line) => /^\S+Z {2}succeeded {2}work\/add {2}[\d.]+ m?s {2}/.test(line))
    assert.ok(ends.length >= 3, out)
    assert.match(
      out,
      /failed {5}work\/flaky {2}[\d.]+ m?s {2}again at \d{4}-\S+Z {2}\S+\n {4}work\.ts:\d+:\d+ attempt 1\n/,
    )
  })
  assert.equal(asked, ['GET /v1/env', 'GET /v1/env/subscribe?from=start'])
})

reads('follow the environment with the times at which events were published', async () => {
  const { event_id } = await json<Published>('send', 'talk', '{"words": []}')
  const follower = startCli(['follow', '--from', 'start'], given)
  const line = await until(() =>
    follower
      .out()
      .split('\n')
      .find((each) => each.includes(event_id)),
  )
  follower.process.kill('SIGINT')
  await follower.ended
  assert.is(Date.parse(line.split(' ')[0] ?? ''), timeOf(event_id))
})

reads('list events by their type, and an event with its runs', async () => {
  const listed = await json<{ event_type: string; event_id: string }[]>('events', '--type', 'flaky')
  assert.ok(listed.length > 0 && listed.every(({ event_type }) => event_type === 'flaky'))
  const { out } = await svc('events', 'show', listed[0]?.event_id ?? '')
  assert.match(out, /\ndata\nnull\n\nSTARTED/)
  const id = newId()
  assert.is(
    (await svc('events', 'show', id)).err,
    `svc: No event ${id}\nSee ${server.url}/ui/events?event=${id}\n`,
  )
})

reads.after(() => server.stop())

run.run()
events.run()
reads.run()
