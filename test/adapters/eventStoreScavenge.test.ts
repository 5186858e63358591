import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { createRestoredLog } from '../../src/adapters/embedded/eventStore/restoredLog.ts'
import { clock, isoOf } from '../../src/clock.ts'
import type { NewEvent, Recorded } from '../../src/events/event.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { fact, facts, failureOf, payloadOf } from '../contracts/eventStore/facts.ts'
import { gather, wholeLog } from '../contracts/eventStore/gather.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const scavenged = async (store: EventStore): Promise<number> => {
  assert.ok(store.scavenge)
  return store.scavenge()
}

const expireAll = async (store: EventStore, streams: readonly string[]): Promise<void> => {
  await Promise.all(streams.map((stream) => store.expire(stream, 0)))
  for (const stream of streams) await until(() => store.isExpired(stream))
}

const withoutIndex = (dir: string): void => {
  for (const name of readdirSync(dir)) if (name.startsWith('index.db')) rmSync(join(dir, name))
}

const textsIn = (dir: string): string[] => {
  const db = new DatabaseSync(join(dir, 'log.db'), { readOnly: true })
  const texts = db
    .prepare('SELECT entries FROM log')
    .all()
    .map(({ entries }) => String(entries))
  db.close()
  return texts
}

const entriesIn = (dir: string): number => {
  const db = new DatabaseSync(join(dir, 'index.db'), { readOnly: true })
  const row = db.prepare('SELECT count(*) AS entries FROM entries').get()
  db.close()
  return Number(row?.['entries'])
}

const scavenge = suite('the embedded log without its expired events', { timeoutMs: 120_000 })

/** Stream and events of each append; streams with an odd number expire. */
const appends = fc.array(fc.record({ stream: fc.nat(5), count: fc.integer({ min: 1, max: 100 }) }), {
  minLength: 1,
  maxLength: 30,
})

const EXPIRING = ['s1', 's3', 's5']

scavenge('keeps every other event at its place, also in a new index and in a restored backup', async () => {
  await fc.assert(
    fc.asyncProperty(appends, async (all) => {
      const dir = tempDir()
      const store = openEventStore({ dir })
      const heads = new Map<string, number>()
      const appended: Promise<unknown>[] = []
      for (const { stream, count } of all) {
        const name = `s${stream}`
        const head = heads.get(name) ?? -1
        appended.push(store.append(name, facts('env', count, head + 1), head < 0 ? 'none' : head))
        heads.set(name, head + count)
      }
      await Promise.all(appended)
      const before = (await wholeLog(store)).filter(({ stream }) => !EXPIRING.includes(stream))
      const used = EXPIRING.filter((name) => heads.has(name))
      await expireAll(store, used)
      const lost = used.reduce((sum, name) => sum + (heads.get(name) ?? 0) + 1, 0)
      assert.is(await scavenged(store), lost)
      assert.is(await scavenged(store), 0)
      const check = async (opened: EventStore) => {
        assert.equal(await wholeLog(opened), before)
        for (const [name, head] of heads) {
          const events = await Array.fromAsync(opened.read(name))
          assert.equal(
            events,
            before.filter(({ stream }) => stream === name),
          )
          const error = await failureOf(opened.append(name, [fact('env', 0)], 'none'))
          assert.is((error as { data?: { actual?: unknown } }).data?.actual, head)
        }
      }
      await check(store)
      const head = await store.head()
      const rows = store.storedLog?.().rowsAfter(0, Infinity) ?? []
      await store.close()
      withoutIndex(dir)
      const rebuilt = openEventStore({ dir })
      assert.is(await rebuilt.head(), head)
      await check(rebuilt)
      await rebuilt.close()
      const restoredIn = tempDir()
      const log = createRestoredLog(join(restoredIn, 'log.db'))
      log.append(rows)
      log.finish([])
      const restored = openEventStore({ dir: restoredIn })
      await check(restored)
      await restored.close()
    }),
    { numRuns: 8 },
  )
})

scavenge('has nothing of them but the names and revisions of their streams', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('gone', facts('env', 70), 'none')
  await store.append('gone', [fact('env', 'secret')], 69)
  await store.append('kept', facts('env', 1), 'none')
  await expireAll(store, ['gone'])
  assert.is(await scavenged(store), 71)
  await store.close()
  assert.equal(
    textsIn(dir)
      .map((text) => text.trim())
      .slice(0, 3),
    ['[64]', '[6]', '[["gone",70]]'],
  )
  assert.is(entriesIn(dir), 2)
})

scavenge('forgets the remains of a stream when it has later events', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('s', facts('env', 2), 'none')
  await expireAll(store, ['s'])
  assert.is(await scavenged(store), 2)
  await store.append('s', [fact('env', 'later')], 1)
  await store.expire('s', 1000)
  assert.is(await scavenged(store), 0)
  assert.equal((await Array.fromAsync(store.read('s'))).map(payloadOf), ['later'])
  assert.equal(
    (await Array.fromAsync(store.read('s'))).map(({ revision }) => revision),
    [2],
  )
  await store.close()
  assert.is(textsIn(dir)[0]?.trim(), '[2]')
  assert.is(entriesIn(dir), 1)
})

scavenge('keeps the text of the other events of a row as it was written', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  const odd = ['"],[\\', { 'a"b': [1, [2]], '10': 1e21, '2': '\u2028\ud800' }, '\\"', '}{']
  await Promise.all([
    store.append('gone', [fact('env', odd[0])], 'none'),
    store.append(
      'kept',
      odd.map((value) => fact('env', value)),
      'none',
    ),
    store.append('gone', [fact('env', odd[1])], 0),
  ])
  const [text = ''] = textsIn(dir)
  const kept = await Array.fromAsync(store.read('kept'))
  await expireAll(store, ['gone'])
  assert.is(await scavenged(store), 2)
  await store.close()
  const [left = ''] = textsIn(dir)
  const own = left
    .trim()
    .replace(/^\[1,/, '')
    .replace(/,\["gone",1\]\]$/, '')
  assert.ok(own.length > 400 && text.includes(own))
  const again = openEventStore({ dir })
  assert.equal(await Array.fromAsync(again.read('kept')), kept)
  await again.close()
})

scavenge('is the same when a crash loses what the index has removed', async () => {
  const [dir, copy] = [tempDir(), tempDir()]
  const store = openEventStore({ dir })
  await store.append('s', facts('env', 200), 'none')
  await store.append('kept', facts('env', 3), 'none')
  await expireAll(store, ['s'])
  await store.close()
  cpSync(dir, copy, { recursive: true })
  const scavenging = openEventStore({ dir })
  assert.is(await scavenged(scavenging), 200)
  await scavenging.close()
  withoutIndex(dir)
  cpSync(join(copy, 'index.db'), join(dir, 'index.db'))
  const later = openEventStore({ dir })
  assert.is(await later.isExpired('s'), true)
  assert.equal(await Array.fromAsync(later.read('s')), [])
  await later.expire('s', 1000)
  assert.is((await later.append('s', [fact('env', 'later')], 199)).revision, 200)
  assert.equal((await Array.fromAsync(later.read('s'))).map(payloadOf), ['later'])
  assert.equal((await Array.fromAsync(later.read('s', { from: 150 }))).map(payloadOf), ['later'])
  assert.is(await scavenged(later), 0)
  await later.close()
  assert.is(entriesIn(dir), 4)
})

scavenge('goes on with a stream of which a crash has left entries in the index', async () => {
  const dir = tempDir()
  const DAY_S = 86_400
  const aged = (days: number): NewEvent => {
    const { metadata, ...rest } = fact('env', days)
    return { ...rest, metadata: { ...metadata, first_at: isoOf(clock.now() - days * DAY_S * 1000) } }
  }
  const store = openEventStore({ dir })
  await store.append('s', [aged(10), aged(10), aged(5), aged(0)], 'none')
  await store.expire('s', 7 * DAY_S)
  await store.close()
  const stale = tempDir()
  cpSync(join(dir, 'index.db'), join(stale, 'index.db'))
  const scavenging = openEventStore({ dir })
  assert.is(await scavenged(scavenging), 2)
  await scavenging.close()
  withoutIndex(dir)
  cpSync(join(stale, 'index.db'), join(dir, 'index.db'))
  const later = openEventStore({ dir })
  await later.expire('s', 3 * DAY_S)
  assert.is(await scavenged(later), 1)
  assert.equal((await Array.fromAsync(later.read('s'))).map(payloadOf), [0])
  await later.close()
  assert.is(entriesIn(dir), 1)
})

scavenge('is never half done: a row is as before or without its expired events', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  for (let n = 0; n < 20; n++) await store.append(`s${n}`, facts('env', 300), 'none')
  await expireAll(
    store,
    Array.from({ length: 20 }, (_, n) => `s${n}`),
  )
  const [copies, running] = [[] as string[], scavenged(store)]
  let isDone = false
  void running.then(() => (isDone = true))
  while (!isDone) {
    const copy = tempDir()
    for (const name of readdirSync(dir)) if (!name.endsWith('-shm')) cpSync(join(dir, name), join(copy, name))
    copies.push(copy)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.is(await running, 6000)
  await store.close()
  for (const copy of copies.filter((_, i) => i % Math.ceil(copies.length / 10) === 0)) {
    const opened = openEventStore({ dir: copy })
    for (let n = 0; n < 20; n++) assert.equal(await Array.fromAsync(opened.read(`s${n}`)), [])
    await scavenged(opened)
    assert.equal(await wholeLog(opened), [])
    for (let n = 0; n < 20; n++) assert.is((await opened.append(`s${n}`, facts('env', 1), 299)).revision, 300)
    await opened.close()
  }
})

scavenge('accepts appends and serves readers meanwhile', async () => {
  const store = openEventStore({ dir: tempDir() })
  for (let n = 0; n < 30; n++) await store.append(`old${n}`, facts('env', 200), 'none')
  await expireAll(
    store,
    Array.from({ length: 30 }, (_, n) => `old${n}`),
  )
  const after = await store.head()
  const reader = gather((signal) => store.subscribe({ after, signal }))
  const running = scavenged(store)
  for (let n = 0; n < 50; n++) await store.append('new', facts('env', 1, n), n === 0 ? 'none' : n - 1)
  assert.is(await running, 6000)
  const read = (): Recorded[] => reader.items.flatMap(({ events }) => events)
  await until(() => read().length === 50)
  await reader.stop()
  assert.is((await Array.fromAsync(store.read('new'))).length, 50)
  await store.close()
})

scavenge('stops at a damaged row and changes nothing from there on', async () => {
  const dir = tempDir()
  const first = openEventStore({ dir })
  for (const stream of ['a', 'b']) await first.append(stream, facts('env', 3), 'none')
  await expireAll(first, ['a', 'b'])
  await first.close()
  const db = new DatabaseSync(join(dir, 'log.db'))
  db.exec(`UPDATE log SET entries = replace(entries, '"payload":1', '"payload":7') WHERE first = 1`)
  db.close()
  const before = textsIn(dir)
  const reasons: (string | null)[] = []
  const store = openEventStore({ dir, onRefusing: (reason) => reasons.push(reason) })
  const error = await failureOf(scavenged(store))
  assert.match((error as Error).message, 'log.db is damaged: the 3 events at positions 1 to 3')
  await store.close()
  assert.equal(textsIn(dir), before)
  assert.equal(reasons, [])
})

scavenge('ends when the store is closed', async () => {
  const store = openEventStore({ dir: tempDir() })
  for (let n = 0; n < 30; n++) await store.append(`old${n}`, facts('env', 200), 'none')
  await expireAll(
    store,
    Array.from({ length: 30 }, (_, n) => `old${n}`),
  )
  const running = scavenged(store)
  await store.close()
  assert.ok((await running) < 6000)
})

scavenge('gives the space back to the disk', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  const large = 'x'.repeat(60_000)
  for (let n = 0; n < 800; n++) await store.append('large', [fact('env', large)], n === 0 ? 'none' : n - 1)
  await store.append('kept', facts('env', 3), 'none')
  await expireAll(store, ['large'])
  assert.is(await scavenged(store), 800)
  await store.close()
  const { size } = statSync(join(dir, 'log.db'))
  assert.ok(size < 24 << 20, `log.db still has ${size} bytes`)
  const again = openEventStore({ dir })
  assert.is((await Array.fromAsync(again.read('kept'))).length, 3)
  await again.close()
})

scavenge('uses the space again in a file of an earlier version', async () => {
  const dir = tempDir()
  const db = new DatabaseSync(join(dir, 'log.db'))
  db.exec(`PRAGMA journal_mode=WAL;
    CREATE TABLE log (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, entries TEXT NOT NULL)`)
  db.close()
  const store = openEventStore({ dir })
  const fill = async (stream: string) => {
    for (let n = 0; n < 400; n++)
      await store.append(stream, [fact('env', 'x'.repeat(60_000))], n === 0 ? 'none' : n - 1)
    await expireAll(store, [stream])
    assert.is(await scavenged(store), 400)
  }
  await fill('a')
  await fill('b')
  await fill('c')
  await store.close()
  const { size } = statSync(join(dir, 'log.db'))
  assert.ok(size < 44 << 20, `log.db has ${size} bytes`)
})

scavenge.run()
