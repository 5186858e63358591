import * as assert from 'uvu/assert'
import { dropUnread } from '../../src/projections/dropUnread.ts'
import { nameOf } from '../../src/projections/projection.ts'
import { shadowOf } from '../../src/projections/shadow.ts'
import { until } from '../support/until.ts'
import { any, projecting } from './projectedNames.ts'

const dropping = projecting('the removal of earlier read models')

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
  void dropUnread({ readModels, projectors, namesRead, looks: 1, lookMs: 5 }, stopping.signal)
  await until(() => looks > 2)
  assert.ok((await namesOf()).includes(nameOf(shadowOf(any)))) // a node of the earlier build works on it
  read.delete(nameOf(any))
  await until(async () => (await namesOf()).length === 3)
  const kept = (await namesOf()).filter((name) => name.startsWith(any.name))
  assert.equal(kept.toSorted(), [nameOf(raised), nameOf(shadowOf(raised))].toSorted())
})

dropping.run()
