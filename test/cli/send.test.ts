import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Run } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { json, lines, server, svc, type Published } from './workService.ts'

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

events('reads JSON from a file that an editor of Windows wrote', async () => {
  const file = join(tempDir(), 'event.json')
  writeFileSync(file, '\uFEFF{"words": ["a"]}')
  assert.is((await json<Published>('send', 'talk', `@${file}`)).handlers, 1)
})

events('refuses a file of another encoding, whose letters would be lost', async () => {
  const file = join(tempDir(), 'event.json')
  writeFileSync(file, Buffer.from('{"words": ["M\u00fcller"]}', 'latin1'))
  const { code, err } = await svc('send', 'talk', `@${file}`)
  assert.equal([code, err], [2, `svc: data: ${file}: expected text in UTF-8\n`])
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

events.after(() => server.stop())

events.run()
