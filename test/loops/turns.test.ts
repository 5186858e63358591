import * as assert from 'uvu/assert'
import { Turns } from '../../src/loops/turns.ts'
import { suite } from '../support/suite.ts'

/** Work that continues until it is ended; `began` lists the names in the order of their starts. */
const setUp = () => {
  const turns = new Turns()
  const began: string[] = []
  const ends = new Map<string, (error?: Error) => void>()
  const start = (key: string, name: string): Promise<string> =>
    turns.run(key, () => {
      began.push(name)
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      ends.set(name, (error) => (error ? reject(error) : resolve(name)))
      return promise
    })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const end = async (name: string, error?: Error) => {
    ends.get(name)?.(error)
    await settled()
  }
  return { began, start, end, settled }
}

const turns = suite('work in turns')

turns('of one key runs one after the other, that of others at the same time', async () => {
  const { began, start, end, settled } = setUp()
  const all = [start('a', 'a1'), start('a', 'a2'), start('b', 'b1')]
  await settled()
  assert.equal(began, ['a1', 'b1'])
  await end('a1')
  assert.equal(began, ['a1', 'b1', 'a2'])
  await end('a2')
  await end('b1')
  assert.equal(await Promise.all(all), ['a1', 'a2', 'b1'])
})

turns('that fails rejects, and the next one runs', async () => {
  const { began, start, end } = setUp()
  const [first, second] = [start('a', 'a1'), start('a', 'a2')]
  first.catch(() => {})
  await end('a1', new Error('torn'))
  await end('a1', new Error('torn'))
  assert.equal(began, ['a1', 'a2'])
  await end('a2')
  assert.is(((await first.catch((error: unknown) => error)) as Error).message, 'torn')
  assert.is(await second, 'a2')
})

turns.run()
