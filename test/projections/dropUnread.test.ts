import * as assert from 'uvu/assert'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { dropUnread, type Unread } from '../../src/projections/dropUnread.ts'
import { nameOf } from '../../src/projections/projection.ts'
import { shadowOf } from '../../src/projections/shadow.ts'
import { SkippedFacts } from '../../src/projections/skippedFacts.ts'
import { until } from '../support/until.ts'
import { any, life, newEvents, projecting, withWriter } from './projectedNames.ts'

const dropping = projecting('the removal of earlier read models')

/** Looks until the end of the test, at which the engines close. */
const run = (unread: Omit<Unread, 'looks'>, signal: AbortSignal): void =>
  void dropUnread({ ...unread, looks: 1, lookMs: 5 }, signal).catch(() => {})

dropping('removes what an unfinished rebuild of an earlier version has left', async (context) => {
  const { readModels, stopping } = context
  const raised = { ...any, version: 2 }
  for (const spec of [any, shadowOf(any), raised, shadowOf(raised)]) await readModels.writer(spec)
  const namesOf = async () => (await readModels.versions()).map(nameOf)
  const read = new Set([nameOf(any), nameOf(raised)])
  let looks = 0
  const namesRead = () => {
    looks++
    return Promise.resolve(read)
  }
  const projectors = {
    replaces: ({ name, version }: { name: string; version: number }) => name === any.name && version < 2,
  }
  run({ readModels, projectors, namesRead }, stopping.signal)
  await until(() => looks > 2)
  assert.ok((await namesOf()).includes(nameOf(shadowOf(any)))) // a node of the earlier build works on it
  read.delete(nameOf(any))
  await until(async () => (await namesOf()).length === 3)
  const kept = (await namesOf()).filter((name) => name.startsWith(any.name))
  assert.equal(kept.toSorted(), [nameOf(raised), nameOf(shadowOf(raised))].toSorted())
})

dropping('keeps what a read model lacks that begins during a look', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 0)), 'none')
  const facts = await Array.fromAsync(store.read('p'))
  const projectors = { replaces: () => false }
  let looks = 0
  const beginning: ReadModels = {
    ...withWriter(readModels, () => ({})),
    async versions() {
      const stored = await readModels.versions()
      if (looks++ > 0) return stored
      await readModels.writer(any)
      for (const fact of facts) await (await SkippedFacts.open(readModels, nameOf(any))).add(fact, 'a defect')
      return stored
    },
  }
  const namesRead = () => Promise.resolve(new Set<string>())
  run({ readModels: beginning, projectors, namesRead }, stopping.signal)
  await until(() => looks > 2)
  assert.is(await (await SkippedFacts.open(readModels, nameOf(any))).count(), 1)
})

dropping('forgets the position of a version before the version is gone', async (context) => {
  const { readModels, stopping } = context
  await readModels.writer(any)
  const projectors = { replaces: () => true }
  const namesRead = () => Promise.resolve(new Set<string>())
  const stored: boolean[] = []
  const forget = async (name: string) => {
    stored.push((await readModels.versions()).map(nameOf).includes(name))
  }
  run({ readModels, projectors, namesRead, forget }, stopping.signal)
  await until(async () => !(await readModels.versions()).map(nameOf).includes(nameOf(any)))
  assert.ok(stored.length > 0 && stored.every(Boolean))
})

dropping.run()
