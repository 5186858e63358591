import * as assert from 'uvu/assert'
import { atMost, withDeadline } from '../../src/loops/deadline.ts'
import { suite } from '../support/suite.ts'

const HOUR_MS = 3_600_000
const late = () => new Error('late')
const never = () => new Promise<never>(() => {})

const deadline = suite('work with a deadline')
deadline('settles as the work does when it is in time', async () => {
  assert.is(await withDeadline(HOUR_MS, Promise.resolve(7), late), 7)
  const failed = await withDeadline(HOUR_MS, Promise.reject(new Error('broke')), late).catch(
    (error: Error) => error.message,
  )
  assert.is(failed, 'broke')
})
deadline('rejects when the work takes longer', async () => {
  const failed = await withDeadline(1, never(), late).catch((error: Error) => error.message)
  assert.is(failed, 'late')
})
deadline('ignores a late result of the work, also a failure', async () => {
  const { promise, reject } = Promise.withResolvers<never>()
  await withDeadline(1, promise, late).catch(() => {})
  reject(new Error('unhandled, it would end the process'))
  await new Promise(setImmediate)
})
deadline.run()

const most = suite('work that is waited for at most a while')
most('settles as the work does when it is in time', async () => {
  assert.is(await atMost(HOUR_MS, Promise.resolve(7)), 7)
  const failed = await atMost(HOUR_MS, Promise.reject(new Error('broke'))).catch(
    (error: Error) => error.message,
  )
  assert.is(failed, 'broke')
})
most('resolves with undefined when the work takes longer', async () => {
  const alive = setInterval(() => {}, 10)
  assert.is(await atMost(1, never()), undefined)
  clearInterval(alive)
})
most.run()
