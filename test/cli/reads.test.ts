import * as assert from 'uvu/assert'
import type { Run, RunExplanation } from '../../src/client/index.ts'
import { newId, timeOf } from '../../src/ids.ts'
import { answering } from '../support/answering.ts'
import { cli, startCli } from '../support/cli.ts'
import { relaying } from '../support/relaying.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { given, json, lines, seeRun, server, svc, type Published } from './workService.ts'

const reads = suite('svc show, logs, follow and replay', { timeoutMs: 120_000 })
reads.before(async () => {
  for (const text of ['"one"', '"two"']) assert.is((await svc('run', 'work/fail', text)).code, 1)
})

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
  await until(
    async () => {
      await svc('send', 'talk', '{"words": []}') // until one is published after the follower has begun
      return /succeeded {2}work\/talk/.test(follower.out()) || undefined
    },
    { timeoutMs: 30_000 },
  )
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
    await until(() => /work\.ts:\d+:\d+ attempt 2\n/.test(follower.out()) || undefined, { timeoutMs: 30_000 })
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
  assert.equal(asked, ['GET /v1/sign-in', 'GET /v1/env/subscribe?from=start'])
})

reads('follow a stream with a session that may read streams only', async () => {
  const { stream_id } = await json<Published>('send', 'talk', '{"words": ["heard"]}')
  const { token } = await json<{ token: string }>(
    'sessions',
    'create',
    '--permissions',
    '{"stream:*": ["read"]}',
  )
  const { code, out, err } = await cli(['follow', stream_id], { env: { ...given.env, SVC_KEY: token } })
  assert.equal([code, err], [0, ''])
  assert.match(out, 'heard')
})

reads('follow the environment with the times at which events were published', async () => {
  const { event_id } = await json<Published>('send', 'talk', '{"words": []}')
  const follower = startCli(['follow', '--from', 'start'], given)
  const line = await until(
    () =>
      follower
        .out()
        .split('\n')
        .find((each) => each.includes(event_id)),
    { timeoutMs: 30_000 },
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

reads.run()
