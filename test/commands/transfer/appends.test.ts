import * as assert from 'uvu/assert'
import { Appends } from '../../../src/commands/transfer/appends.ts'
import { failureOf } from '../../contracts/eventStore/facts.ts'
import { suite } from '../../support/suite.ts'

/** Appends that end when the test says so. */
const openAppends = () => {
  const appends = new Appends()
  const begun: string[] = []
  const ends = new Map<string, PromiseWithResolvers<void>>()
  return {
    begun,
    finish: () => appends.finish(),
    add: (stream: string, name: string) =>
      appends.add(stream, () => {
        begun.push(name)
        const end = Promise.withResolvers<void>()
        ends.set(name, end)
        return end.promise
      }),
    end: (name: string) => ends.get(name)?.resolve(),
    fail: (name: string) => ends.get(name)?.reject(new Error(name)),
  }
}

const appends = suite('appends of an import')

appends('of streams of runs are in progress together', async () => {
  const { add, begun, end, finish } = openAppends()
  await add('stream-a', 'a')
  await add('stream-b', 'b')
  await add('runlog-a', 'log')
  assert.equal(begun, ['a', 'b', 'log'])
  for (const name of begun) end(name)
  await finish()
})

appends('of one stream follow each other', async () => {
  const { add, begun, end, finish } = openAppends()
  await add('stream-a', 'first')
  const second = add('stream-a', 'second')
  await add('stream-b', 'other')
  assert.equal(begun, ['first', 'other'])
  end('first')
  await second
  assert.equal(begun, ['first', 'other', 'second'])
  for (const name of begun) end(name)
  await finish()
})

appends('of any other stream wait for all before, and all after wait for them', async () => {
  const { add, begun, end } = openAppends()
  await add('stream-a', 'a')
  const project = add('project-p', 'project')
  assert.equal(begun, ['a'])
  end('a')
  while (!begun.includes('project')) await Promise.resolve()
  end('project')
  await project
})

appends('report the first failure, and begin no further one', async () => {
  const { add, begun, fail, finish } = openAppends()
  await add('stream-a', 'a')
  fail('a')
  assert.match(String(await failureOf(finish())), 'Error: a')
  assert.match(String(await failureOf(add('stream-b', 'b'))), 'Error: a')
  assert.equal(begun, ['a'])
})

appends.run()
