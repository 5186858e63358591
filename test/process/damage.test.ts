import { cpSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { type Event, publish } from '../support/build.ts'
import type { Answer } from '../support/http.ts'
import { spawnServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import {
  checkContinues,
  COUNT,
  damagePages,
  EMBEDDED,
  publishMany,
  put,
  refusedIn,
  remove,
  startIn,
  totalOf,
} from './damaged.ts'

const losses = suite('a start with a log that lost events', { timeoutMs: 120_000 })

losses('is refused when an old log was put back, until the loss is accepted', async () => {
  const [dataDir, backup] = [tempDir(), tempDir()]
  const first = await startIn(dataDir)
  const kept = await publishMany(first)
  await first.stop()
  cpSync(dataDir, backup, { recursive: true })
  const second = await startIn(dataDir)
  const lost: string[] = []
  for (let i = 0; i < COUNT; i++) lost.push((await publish(second.api, 'order:created')).event_id)
  await until(async () => (await totalOf(second)) === 2 * COUNT)
  await second.stop()
  put(backup, dataDir, 'log.db')

  const { line, acceptance } = await refusedIn(dataDir)
  assert.match(
    line,
    /^The end of the log is missing: the event store remembers at least \d+ events that the log lacks/,
  )
  const counts = [...line.matchAll(/(\d+) events that/g)].map(([, count]) => Number(count))
  assert.is(counts.length, 2, line) // of the event store and of the read models
  assert.ok(Math.min(...counts) >= 3 * COUNT, line) // of each event three facts
  const printed = await failureOf(spawnServer({ dataDir, env: EMBEDDED }))
  assert.ok(
    String(printed).endsWith(`svc: ${line}\n`) && /exit code 1:/.test(String(printed)),
    String(printed),
  )
  assert.match((await refusedIn(dataDir, { SVC_ACCEPT_LOSS: '0123456789ab' })).line, acceptance)

  const third = await startIn(dataDir, { SVC_ACCEPT_LOSS: acceptance })
  assert.match(third.output.join(''), /WARN An operator has accepted that events are lost/i)
  await checkContinues(third, kept, lost)
  await third.stop()
  const fourth = await startIn(dataDir, { SVC_ACCEPT_LOSS: acceptance })
  assert.is(await totalOf(fourth), COUNT + 1)
  await fourth.stop()

  put(backup, dataDir, 'log.db')
  const again = await refusedIn(dataDir, { SVC_ACCEPT_LOSS: acceptance })
  assert.is.not(again.acceptance, acceptance)
})

losses('starts again when the missing part is restored', async () => {
  const [dataDir, backup, newest] = [tempDir(), tempDir(), tempDir()]
  const first = await startIn(dataDir)
  await first.stop()
  put(dataDir, backup, 'log.db')
  const second = await startIn(dataDir)
  const ids = await publishMany(second)
  await second.stop()
  put(dataDir, newest, 'log.db')
  put(backup, dataDir, 'log.db')
  await refusedIn(dataDir)
  put(newest, dataDir, 'log.db')
  const third = await startIn(dataDir)
  for (const id of ids) assert.is((await third.api.get<Event>(`/events/${id}`)).event_id, id)
  await third.stop()
})

losses('is refused when log.db is gone, whatever else is left of it', async () => {
  for (const alsoGone of [[], ['index.db', 'read-models.db']]) {
    const dataDir = tempDir()
    const first = await startIn(dataDir)
    const lost = await publishMany(first)
    await first.stop()
    for (const database of ['log.db', ...alsoGone]) remove(dataDir, database)
    const { line, acceptance } = await refusedIn(dataDir)
    assert.match(line, /^The log is missing: /)
    if (alsoGone.length < 2) assert.match(line, /\d{2,} events that/)
    const second = await startIn(dataDir, { SVC_ACCEPT_LOSS: acceptance })
    await checkContinues(second, [], lost)
    await second.stop()
  }
})
losses.run()

const found = suite('damage that is found while the service runs', { timeoutMs: 120_000 })

for (const [database, ask] of [
  ['index.db', ({ api }) => api.send('POST', '/events', { body: { event_type: 'order:created' } })],
  ['read-models.db', ({ api }) => api.send('GET', '/events?limit=1')],
] satisfies [string, (server: TestServer) => Promise<Answer>][])
  found(`to ${database} ends the readiness until a restart, which repairs it`, async () => {
    const dataDir = tempDir()
    const server = await spawnServer({ dataDir, env: EMBEDDED })
    const kept = [...(await publishMany(server))]
    await until(() => damagePages(join(dataDir, database)))
    const refused = await until(async () => {
      const reply = await ask(server)
      if (reply.status === 201) kept.push((reply.json as { data: Event }).data.event_id)
      return reply.status >= 400 ? reply : undefined
    })
    const expected = `${database} is damaged; restart the service, which builds it again`
    assert.is(refused.status, 503, refused.text)
    assert.match(refused.text, expected)
    const ready = await fetch(`${server.url}/readyz`)
    assert.is(ready.status, 503)
    assert.match(await ready.text(), expected)
    for (let i = 0; i < 3; i++) assert.is((await ask(server)).status, 503)
    const errors = server.output
      .join('')
      .split('\n')
      .filter((line) => /^\S+ error /.test(line))
    assert.is(errors.length, 1, errors.join('\n'))
    assert.match(String(errors), expected)
    assert.is(await server.end('SIGTERM'), 0)

    const again = await spawnServer({ dataDir, env: EMBEDDED })
    assert.is((await fetch(`${again.url}/readyz`)).status, 200)
    await checkContinues(again, kept, [])
    assert.is(await again.end('SIGTERM'), 0)
  })
found.run()
