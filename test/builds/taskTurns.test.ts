import * as assert from 'uvu/assert'
import { TaskTurns } from '../../src/builds/taskTurns.ts'
import { isAppError } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'

/** Tasks that run until they are ended; `began` lists them in the order of their starts. */
const setUp = (waiting = 100) => {
  const turns = new TaskTurns({ places: 2, waiting })
  const began: string[] = []
  const ends = new Map<string, () => void>()
  const start = (name: string, options: { signal?: AbortSignal; forRun?: boolean } = {}) =>
    turns.run(
      name.replace(/\d+$/, ''),
      () => {
        began.push(name)
        return new Promise<void>((resolve) => ends.set(name, resolve))
      },
      options,
    )
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve()
  }
  const end = async (name: string) => {
    ends.get(name)?.()
    await settle()
  }
  return { turns, began, start, settle, end }
}

const turns = suite('the turns of tasks of builds')

turns('run two at once, also of one organization if no other waits', async () => {
  const { turns: all, began, start, settle, end } = setUp()
  for (const name of ['a1', 'a2', 'a3']) void start(name)
  await settle()
  assert.equal([began, all.running], [['a1', 'a2'], 2])
  await end('a1')
  assert.equal([began, all.running], [['a1', 'a2', 'a3'], 2])
})

turns('give a free place to the organization with the fewest tasks, then in turn', async () => {
  const { began, start, settle, end } = setUp()
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'c1']) void start(name)
  await settle()
  for (const name of ['a1', 'a2', 'b1', 'a3', 'c1', 'b2']) await end(name)
  assert.equal(began, ['a1', 'a2', 'b1', 'a3', 'c1', 'b2', 'a4', 'a5'])
})

turns('refuse a task when too many wait, but not one that a run needs', async () => {
  const { start, settle, began, end } = setUp(1)
  for (const name of ['a1', 'a2', 'a3']) void start(name)
  await settle()
  try {
    await start('b1')
    assert.unreachable()
  } catch (error) {
    assert.ok(isAppError(error, 'unavailable'))
    assert.is(isAppError(error) && error.data['retryAfter'], 5)
  }
  void start('b2', { forRun: true })
  await end('a1')
  assert.equal(began, ['a1', 'a2', 'b2'])
})

turns('do not count the waiting tasks of runs among those that may wait', async () => {
  const { turns: all, start, settle, began, end } = setUp(1)
  const left = new AbortController()
  for (const name of ['a1', 'a2']) void start(name)
  for (const name of ['a3', 'a4', 'a5']) void start(name, { forRun: true })
  const leaving = start('a6', { forRun: true, signal: left.signal })
  await settle()
  const refused = start('b1').catch((error: unknown) => error)
  left.abort(new Error('left'))
  assert.is(await leaving.catch((error: Error) => error.message), 'left')
  assert.ok(isAppError(await start('c1').catch((error: unknown) => error), 'unavailable'))
  for (const name of ['a1', 'a2', 'b1', 'a3', 'a4', 'a5']) await end(name)
  assert.is(await refused, undefined)
  assert.equal([began, all.running], [['a1', 'a2', 'b1', 'a3', 'a4', 'a5'], 0])
  for (const name of ['a1', 'a2', 'b1']) void start(name)
  assert.ok(isAppError(await start('c1').catch((error: unknown) => error), 'unavailable')) // each was uncounted once
})

turns('forget a waiting task whose caller left, and continue after one that failed', async () => {
  const { turns: all, began, start, settle, end } = setUp()
  const left = new AbortController()
  for (const name of ['a1', 'a2']) void start(name)
  const waiting = start('b1', { signal: left.signal })
  void start('c1')
  left.abort(new Error('left'))
  assert.is(await waiting.catch((error: Error) => error.message), 'left')
  await end('a1')
  assert.equal(began, ['a1', 'a2', 'c1'])
  for (const name of ['a2', 'c1']) await end(name)
  await all.run('d', () => Promise.reject(new Error('broke'))).catch(() => {})
  await settle()
  assert.is(all.running, 0)
})

turns.run()
