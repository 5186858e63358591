import { cpSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { type Event, publish } from '../support/build.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import {
  checkContinues,
  COUNT,
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
