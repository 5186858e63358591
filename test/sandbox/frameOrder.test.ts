import * as assert from 'uvu/assert'
import { FrameOrder } from '../../src/sandbox/frameOrder.ts'
import { suite } from '../support/suite.ts'

const opened = () => {
  const changes: boolean[] = []
  const errors: unknown[] = []
  const order: FrameOrder = new FrameOrder({
    onChange: () => changes.push(order.isBusy),
    onError: (error) => errors.push(error),
  })
  return { order, changes, errors }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

const frames = suite('the frames of a child')

frames('are taken at once, unless one before them needs several turns', async () => {
  const { order, changes } = opened()
  const taken: string[] = []
  const large = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  order.add(() => void taken.push('small'))
  order.add(() => large.promise.then(() => void taken.push('large')))
  order.add(() => void taken.push('after the large one'))
  order.add(() => second.promise.then(() => void taken.push('second')))
  order.add(() => void taken.push('last'))
  await turn()
  assert.equal([taken, changes], [['small'], [true]])
  large.resolve()
  await turn()
  assert.equal(taken, ['small', 'large', 'after the large one'])
  second.resolve()
  await turn()
  assert.equal(taken.slice(3), ['second', 'last'])
  assert.equal(changes, [true, false])
})

frames('after a forbidden one are not taken', async () => {
  const { order, changes, errors } = opened()
  const large = Promise.withResolvers<void>()
  let taken = 0
  order.add(() => large.promise)
  order.add(() => void taken++)
  large.reject(new Error('forbidden'))
  await turn()
  assert.equal([taken, errors.length, changes], [0, 1, [true, false]])
})

frames.run()
