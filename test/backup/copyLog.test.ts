import { cpSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { parseRow } from '../../src/adapters/embedded/eventStore/logRows.ts'
import { createRestoredLog } from '../../src/adapters/embedded/eventStore/restoredLog.ts'
import { openStreamGaps } from '../../src/adapters/embedded/eventStore/streamGaps.ts'
import { prepareFolder } from '../../src/backup/backupFolder.ts'
import { copyLog } from '../../src/backup/copyLog.ts'
import type { Manifest, Segment } from '../../src/backup/manifest.ts'
import { checkedRows } from '../../src/backup/readBackup.ts'
import { openRestoredRows } from '../../src/backup/restoredRows.ts'
import { framesIn } from '../../src/backup/rowFrames.ts'
import { readRows } from '../../src/commands/backups/readRows.ts'
import { unhandledIn } from '../../src/commands/installation/restoreFacts.ts'
import { isAppError } from '../../src/errors.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { StoredLog, StoredRow } from '../../src/ports/storedLog.ts'
import { fact, facts, failureOf } from '../contracts/eventStore/facts.ts'
import { exampleOf } from '../events/examples.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const begun = (store: EventStore): StoredLog => {
  const log = store.storedLog?.()
  assert.ok(log)
  return log
}

const copiedFrom = async (
  dir: string,
  log: StoredLog,
  known: readonly Segment[] = [],
): Promise<Segment[]> => {
  const segments = await copyLog({
    dir,
    source: { rows: (_, after) => framesIn(readRows(log, after)) },
    start: {
      backup_id: 'b',
      log_id: 'l',
      position: log.position,
      master_key_id: '',
      canary: '',
      consumers: [],
    },
    known,
    journal: { add: () => Promise.resolve() },
    onPosition: () => {},
  })
  log.release()
  return segments
}

const copied = (dir: string, store: EventStore, known?: readonly Segment[]): Promise<Segment[]> =>
  copiedFrom(dir, begun(store), known)

const publishedFact = { ...fact('env', ''), event: exampleOf.EventPublished }

const scavenged = async (store: EventStore, stream: string): Promise<void> => {
  await store.expire(stream, 0)
  await until(() => store.isExpired(stream))
  await store.scavenge?.()
}

const newDir = (): string => {
  const dir = join(tempDir(), 'backup')
  prepareFolder(dir)
  return dir
}

const copy = suite('the copy of a log')

copy('continues a backup whose last row has lost events since then', async () => {
  const [dir, store] = [newDir(), openEventStore({ dir: tempDir() })]
  await store.append('kept', facts('env', 3), 'none')
  await store.append('gone', [fact('env', 'x'.repeat(5 << 20))], 'none') // so that the segment is not written again
  await store.append('gone', facts('env', 2), 0)
  const known = await copied(dir, store)
  await scavenged(store, 'gone')
  await store.append('kept', facts('env', 2, 3), 2)
  const all = await copied(dir, store, known)
  assert.equal(
    all.map(({ first, last }) => [first, last]),
    [
      [1, 6],
      [7, 8],
    ],
  )
  await store.close()
})

const restoredRows = async (dir: string, segments: readonly Segment[]): Promise<readonly StoredRow[]> => {
  const manifest = { segments } as unknown as Manifest
  const rows = await openRestoredRows(
    { manifest, rows: (segment) => checkedRows(dir, segment) },
    openStreamGaps(),
  )
  return Array.fromAsync(rows())
}

/** A store with the log of a backup. */
const restored = (rows: readonly StoredRow[]): EventStore => {
  const dir = tempDir()
  const log = createRestoredLog(join(dir, 'log.db'))
  log.append(rows)
  log.finish([])
  return openEventStore({ dir })
}

const revisionsOf = async (store: EventStore, stream: string): Promise<readonly number[]> =>
  (await Array.fromAsync(store.read(stream))).map(({ revision }) => revision)

/** A store, and a backup of it that has the beginning of `gone`, which has `later` facts more. */
const withLater = async (later: number) => {
  const [dir, store] = [newDir(), openEventStore({ dir: tempDir() })]
  await store.append('kept', facts('env', 1), 'none')
  const large = 'x'.repeat(5 << 20) // so that the segment is not written again
  await store.append('gone', [publishedFact, fact('env', large)], 'none')
  const known = await copied(dir, store)
  await store.append('gone', facts('env', later), 1)
  await store.append('kept', facts('env', 2, 1), 0)
  return { dir, store, known }
}

/** The restored rows of a backup that kept the beginning of `gone`, whose later facts are removed. */
const withoutLaterFacts = async (isContinued: boolean): Promise<readonly StoredRow[]> => {
  const { dir, store, known } = await withLater(2)
  await scavenged(store, 'gone')
  if (isContinued) {
    await store.expire('gone', null)
    await store.append('gone', facts('env', 1), 3)
    await store.scavenge?.()
  }
  const segments = await copied(dir, store, known)
  await store.close()
  assert.is(segments.length, 2)
  return restoredRows(dir, segments)
}

for (const isContinued of [false, true])
  copy(
    `restores no beginning of a stream whose later facts were removed${isContinued ? ' before it continued' : ''}`,
    async () => {
      const store = restored(await withoutLaterFacts(isContinued))
      assert.equal(await revisionsOf(store, 'gone'), isContinued ? [4] : [])
      assert.equal(await revisionsOf(store, 'kept'), [0, 1, 2])
      const { revision } = await store.append('gone', facts('env', 1), isContinued ? 4 : 3)
      assert.is(revision, isContinued ? 5 : 4)
      await store.close()
    },
  )

copy('restores no beginning of a stream whose only later fact was removed', async () => {
  const { dir, store, known } = await withLater(1)
  await scavenged(store, 'gone')
  const after = restored(await restoredRows(dir, await copied(dir, store, known)))
  assert.equal(await revisionsOf(after, 'gone'), [])
  assert.equal(await revisionsOf(after, 'kept'), [0, 1, 2])
  await after.close()
  await store.close()
})

/** What is restored of `gone`: all of it up to the position of the backup, or nothing before an expired fact. */
const overtaken = [
  { later: 1, isEarlier: false, restores: [0, 1, 2] },
  { later: 3, isEarlier: false, restores: [4] },
  { later: 1, isEarlier: true, restores: [] },
  { later: 3, isEarlier: true, restores: [] },
]
for (const { later, isEarlier, restores } of overtaken)
  copy(
    `that a scavenge overtakes restores no stream that ends early: ${later} new, ${isEarlier ? 'none' : 'all'} left`,
    async () => {
      const { dir, store, known } = await withLater(later)
      if (isEarlier) await scavenged(store, 'gone')
      const log = begun(store)
      await store.append('gone', facts('env', 1), later + 1)
      await scavenged(store, 'gone')
      const after = restored(await restoredRows(dir, await copiedFrom(dir, log, known)))
      assert.equal(await revisionsOf(after, 'gone'), restores)
      await after.close()
      assert.is(await store.scavenge?.(), isEarlier ? 1 : 2) // what stayed because of the backup
      await store.close()
    },
  )

copy('leaves nothing unhandled of a stream whose later facts were removed', async () => {
  const rows = await withoutLaterFacts(false)
  const events = async function* () {
    for (const { first, text } of rows) yield* parseRow(first, text).events
  }
  assert.is((await unhandledIn(events())).size, 0)
})

copy('leaves a damaged row of an earlier version, which has no checksum, as it is', () => {
  const gaps = openStreamGaps()
  const row = { first: 1, count: 1, text: '[["stream-a",0,]' }
  gaps.note(row)
  gaps.close()
  assert.equal(gaps.without(row), row)
})

copy('writes a small last segment again without the events that were removed', async () => {
  const [dir, store] = [newDir(), openEventStore({ dir: tempDir() })]
  await store.append('kept', facts('env', 3), 'none')
  await store.append('gone', facts('env', 3), 'none')
  const known = await copied(dir, store)
  await scavenged(store, 'gone')
  await store.append('kept', facts('env', 2, 3), 2)
  const [only, ...more] = await copied(dir, store, known)
  assert.equal([only?.first, only?.last, more.length], [1, 8, 0])
  await store.close()
})

copy('is refused when what is left of the last row is of another log', async () => {
  const dir = newDir()
  const [store, other] = [openEventStore({ dir: tempDir() }), openEventStore({ dir: tempDir() })]
  for (const each of [store, other]) {
    await each.append('kept', facts('env', 3), 'none')
    await each.append('gone', facts('env', 3), 'none')
  }
  const known = await copied(dir, store)
  await scavenged(other, 'gone')
  await other.append('kept', facts('env', 2, 3), 2)
  assert.ok(isAppError(await failureOf(copied(dir, other, known)), 'bad_request'))
  await store.close()
  await other.close()
})

copy('is refused when what is left of a removed event is of another stream', async () => {
  const [dir, own, twin] = [newDir(), tempDir(), tempDir()]
  const common = openEventStore({ dir: own })
  await common.append('kept', facts('env', 3), 'none')
  await common.close()
  cpSync(own, twin, { recursive: true })
  const [store, other] = [openEventStore({ dir: own }), openEventStore({ dir: twin })]
  await store.append('gone', facts('env', 3), 'none')
  await other.append('elsewhere', facts('env', 3), 'none')
  const known = await copied(dir, store)
  await scavenged(other, 'elsewhere')
  await other.append('kept', facts('env', 2, 3), 2)
  assert.ok(isAppError(await failureOf(copied(dir, other, known)), 'bad_request'))
  await store.close()
  await other.close()
})

copy('is refused when nothing is left that could prove that it is the same log', async () => {
  const [dir, store] = [newDir(), openEventStore({ dir: tempDir() })]
  await store.append('gone', facts('env', 3), 'none')
  const known = await copied(dir, store)
  await store.append('gone', facts('env', 3), 2)
  await scavenged(store, 'gone')
  assert.ok(isAppError(await failureOf(copied(dir, store, known)), 'bad_request'))
  await store.close()
})

copy.run()
