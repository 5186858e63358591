import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { Log } from '../support/eventstoredb/log.ts'
import { backupOf, outgrow } from '../support/eventstoredb/restored.ts'
import { realEngines } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { checkContinues, COUNT, EMBEDDED, publishMany, put, refusedIn, startIn, totalOf } from './damaged.ts'

const losses = suite('a start with engines that do not belong together', { timeoutMs: 120_000 })

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
  assert.match(line, /^The end of the log is missing: the read models have \d+ documents? with events/)
  const third = await startIn(dataDir, { ...envAt(restored.url), SVC_ACCEPT_LOSS: acceptance })
  await checkContinues(third, kept, lost)
  await third.stop()
  await restored.stop()

  const empty = await startStandIn()
  assert.match((await refusedIn(dataDir, envAt(empty.url))).line, /^The log is missing: /)
  await empty.stop()
})

remote('is refused also after others have made it longer than the lost one', async () => {
  const dataDir = tempDir()
  const log = new Log()
  const standIn = await startStandIn({ log })
  const first = await startIn(dataDir, { SVC_EVENT_STORE: standIn.url })
  const kept = await publishMany(first, 5)
  await first.stop()
  const backup = backupOf(log, log.all.length)
  const second = await startIn(dataDir, { SVC_EVENT_STORE: standIn.url })
  const lost = await publishMany(second, 10)
  await second.stop()
  await standIn.stop()

  outgrow(backup, log)
  const restored = await startStandIn({ log: backup })
  const { line, acceptance } = await refusedIn(dataDir, { SVC_EVENT_STORE: restored.url })
  assert.match(line, /^The end of the log is missing: the read models have events that the log lacks/)
  const third = await startIn(dataDir, { SVC_EVENT_STORE: restored.url, SVC_ACCEPT_LOSS: acceptance })
  await checkContinues(third, kept, lost)
  await third.stop()
  await restored.stop()
})
remote.run()
