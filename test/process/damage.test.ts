import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { type Event, publish } from '../support/build.ts'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { Log } from '../support/eventstoredb/log.ts'
import { realEngines } from '../support/installation.ts'
import { spawnServer, startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
  SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
}
const COUNT = 40

const publishMany = async ({ api }: TestServer, count = COUNT): Promise<readonly string[]> => {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push((await publish(api, 'order:created', { i })).event_id)
  await until(async () => (await totalOf({ api })) >= count)
  return ids
}

const totalOf = async ({ api }: Pick<TestServer, 'api'>): Promise<number> =>
  (await api.page<Event>('/events?limit=1')).pagination.total

const startIn = (dataDir: string, env: Readonly<Record<string, string>> = {}): Promise<TestServer> =>
  startServer({ dataDir, env: { ...EMBEDDED, ...env } })

/** The reason with which a start is refused, and the value that accepts the loss. */
const refusedIn = async (dataDir: string, env: Readonly<Record<string, string>> = {}) => {
  const failure = await startIn(dataDir, env).then(
    async (server) => {
      await server.stop()
      return new Error('Expected a refusal, got a start')
    },
    (error: unknown) => error,
  )
  if (!isAppError(failure, 'bad_request')) throw new Error('Expected a refusal', { cause: failure })
  const line = failure.message
  assert.not.match(line, '\n')
  return { line, acceptance: /SVC_ACCEPT_LOSS=([0-9a-f]{12})/.exec(line)?.[1] ?? 'none' }
}

const filesOf = (dir: string, database: string): string[] =>
  readdirSync(dir).filter((name) => name.startsWith(database))
const remove = (dir: string, database: string): void =>
  filesOf(dir, database).forEach((name) => rmSync(join(dir, name)))
const put = (from: string, to: string, database: string): void => {
  remove(to, database)
  for (const name of filesOf(from, database)) cpSync(join(from, name), join(to, name))
}

/** New events, and all that the log still has, can be read. */
const checkContinues = async (server: TestServer, kept: readonly string[], lost: readonly string[]) => {
  const { event_id } = await publish(server.api, 'order:created', 'after the loss')
  for (const id of [event_id, ...kept]) assert.is((await server.api.get<Event>(`/events/${id}`)).event_id, id)
  for (const id of lost) assert.is((await server.api.send('GET', `/events/${id}`)).status, 404)
  assert.is(await totalOf(server), kept.length + 1)
}

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

losses('is refused when one flipped bit in the WAL cut the end of the log', async () => {
  const dataDir = tempDir()
  const first = await spawnServer({ dataDir, env: EMBEDDED })
  const acknowledged = await publishMany(first, 3 * COUNT)
  await first.end('SIGKILL')
  const wal = join(dataDir, 'log.db-wal')
  const bytes = readFileSync(wal)
  const at = bytes.indexOf(acknowledged[COUNT] ?? '')
  assert.ok(at > 0)
  bytes[at] = (bytes[at] as number) ^ 1
  writeFileSync(wal, bytes)
  const { line, acceptance } = await refusedIn(dataDir)
  assert.match(line, /^The end of the log is missing: /)
  const second = await startIn(dataDir, { SVC_ACCEPT_LOSS: acceptance })
  const total = await totalOf(second)
  assert.ok(total > 0 && total <= COUNT, `${total}`)
  await checkContinues(second, acknowledged.slice(0, total), acknowledged.slice(COUNT))
  await second.stop()
})

losses('is refused with the read models of another installation', async () => {
  const dirs = [tempDir(), tempDir()] as const
  for (const dir of dirs) {
    const server = await startIn(dir)
    await publishMany(server, dir === dirs[0] ? 3 : 30)
    await server.stop()
  }
  for (const name of ['read-models.db', 'index.db']) put(dirs[0], dirs[1], name)
  const { line, acceptance } = await refusedIn(dirs[1])
  assert.match(
    line,
    /^The log \S+ is another one: the read models have at least \d+ events that the log lacks/,
  )
  const server = await startIn(dirs[1], { SVC_ACCEPT_LOSS: acceptance })
  assert.is(await totalOf(server), 30)
  await server.stop()
})

losses('is refused without the blobs of the log, and with those of another', async () => {
  const [dataDir, other] = [tempDir(), tempDir()]
  for (const dir of [dataDir, other]) {
    const server = await startIn(dir)
    await publishMany(server, 1)
    await server.stop()
  }
  const blobs = join(dataDir, 'blobs')
  rmSync(blobs, { recursive: true })
  assert.match((await refusedIn(dataDir)).line, /^SVC_BLOBS: the blobs do not belong to this log/)
  assert.not(existsSync(join(blobs, 'objects', 'log-id')))
  rmSync(blobs, { recursive: true })
  cpSync(join(other, 'blobs'), blobs, { recursive: true })
  const { line } = await refusedIn(dataDir)
  assert.match(line, /the blobs belong to a log that is not here.*SVC_BLOBS/)
})
losses.run()

const remote = suite('a start with an EventStoreDB from a backup', { timeoutMs: 60_000 })

/** The log as it was when it had `count` events. */
const backupOf = (log: Log, count: number): Log => {
  const copy = new Log()
  for (const { stream, ...event } of log.all.slice(copy.all.length, count))
    copy.append(stream, [event], 'any')
  return copy
}

remote('is refused while the read models are ahead of it', async () => {
  const dataDir = tempDir()
  const log = new Log()
  const standIn = await startStandIn({ log })
  /** Read models and blobs are on the engines in `SVC_TEST_*`, if there are any. */
  const engines = { ...EMBEDDED, ...realEngines(dataDir), SVC_MASTER_KEY: EMBEDDED.SVC_MASTER_KEY }
  const envAt = (url: string) => ({ ...engines, SVC_EVENT_STORE: url })
  const first = await startIn(dataDir, envAt(standIn.url))
  const kept = await publishMany(first, 5)
  await first.stop()
  const backedUp = log.all.length
  const second = await startIn(dataDir, envAt(standIn.url))
  const lost = await publishMany(second, 10)
  await second.stop()
  await standIn.stop()

  const restored = await startStandIn({ log: backupOf(log, backedUp) })
  const { line, acceptance } = await refusedIn(dataDir, envAt(restored.url))
  assert.match(line, /^The end of the log is missing: \d+ documents of the read models contain events/)
  const third = await startIn(dataDir, { ...envAt(restored.url), SVC_ACCEPT_LOSS: acceptance })
  await checkContinues(third, kept, lost)
  await third.stop()
  await restored.stop()

  const empty = await startStandIn()
  assert.match((await refusedIn(dataDir, envAt(empty.url))).line, /^The log is missing: /)
  await empty.stop()
})
remote.run()
