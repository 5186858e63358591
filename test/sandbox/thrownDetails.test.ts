import * as assert from 'uvu/assert'
import type { Thrown } from '../../src/events/run.ts'
import { suite } from '../support/suite.ts'
import { openWorkbench, type Workbench } from './harness.ts'

const FILES = {
  'causes.js': `
import { context } from 'svc'
const chain = (depth) => depth === 0 ? undefined : new Error('level ' + depth, { cause: chain(depth - 1) })
export const deep = () => { throw new Error('top', { cause: chain(9) }) }
export const many = () => Promise.any([fail('a', 'EA'), fail('b', 'EB')])
const fail = (message, code) => Promise.reject(Object.assign(new RangeError(message), { code }))
export const any = () => Promise.any([
  Promise.reject(new Error('first')),
])
export const manyMore = () => { throw new AggregateError(Array.from({ length: 40 }, (_, n) => new Error('e' + n)), 'all') }
export const cycle = () => {
  const error = new Error('round')
  error.cause = new Error('and', { cause: error })
  throw error
}
export const text = () => { throw new Error('top', { cause: 'only text' }) }
export const fields = () => {
  const self = { n: 1 }
  self.self = self
  const error = Object.assign(new Error('x'), {
    code: 11000, big: 10n, when: new Date(0), nan: NaN, map: new Map(), fn() {}, nothing: undefined, self,
    list: [1, [2, [3, [4, [5, [6]]]]]], long: 'y'.repeat(1 << 20), nested: { Authorization: 'Bearer abc' },
    apiKey: 'k', url: new URL('https://a.example/b'),
  })
  const get = () => { throw new Error('a getter is not called') }
  throw Object.defineProperty(error, 'lazy', { enumerable: true, get })
}
export const invalid = () => { throw Object.assign(new Error('x'), { errors: { name: 'is required' } }) }
export const huge = () => {
  const error = new Error('m'.repeat(4 << 20), { cause: new Error('c'.repeat(4 << 20)) })
  for (let n = 0; n < 5000; n++) error['field' + n] = 'v'.repeat(5000)
  throw error
}
export const hostile = () => {
  const error = new Error('still here')
  for (const key of ['cause', 'errors', 'code'])
    Object.defineProperty(error, key, { enumerable: true, get() { throw new Error('no ' + key) } })
  throw error
}
export const proxied = () => {
  const trap = () => { throw new Error('trap') }
  throw new Error('with a proxy', { cause: new Proxy(new Error('inner'), { get: trap, ownKeys: trap, getPrototypeOf: trap }) })
}
export const hostFile = async () => {
  const { readFileSync } = await import('node:fs')
  readFileSync(new URL('./missing.txt', import.meta.url))
}
class DeclinedError extends TypeError {}
export const unnamed = () => { throw new DeclinedError('x', { cause: new (class e extends Error {})('y') }) }
export const overflow = () => overflow() + 1
export const leaks = async () => {
  const key = await context('KEY')
  throw Object.assign(new Error('x', { cause: new Error('with ' + key) }), { used: key, nested: { [key]: [key] } })
}
`,
}

const details = suite<Workbench>('the details of an error')

details.before(async (context) => void Object.assign(context, await openWorkbench(FILES)))
details.after(({ runtime }) => runtime.close())

const messagesOf = (error: { cause?: unknown }): string[] => {
  const cause = error.cause as Thrown | undefined
  return cause ? [cause.message, ...messagesOf(cause)] : []
}

details('contain five causes', async ({ failure }) => {
  assert.equal(messagesOf(await failure('causes/deep')), [
    'level 9',
    'level 8',
    'level 7',
    'level 6',
    'level 5',
  ])
})

details('contain the errors of an AggregateError with their codes', async ({ failure }) => {
  const { name, errors: several } = await failure('causes/many')
  assert.is(name, 'AggregateError')
  assert.equal(
    several?.map((each) => [each.name, each.message, each.code]),
    [
      ['RangeError', 'a', 'EA'],
      ['RangeError', 'b', 'EB'],
    ],
  )
})

details('have the place of the first error below one without a place', async ({ failure }) => {
  const { location } = await failure('causes/any')
  assert.match(location?.snippet ?? '', "new Error('first')")
})

details('contain ten errors, and the number of the others', async ({ failure }) => {
  const { errors: several = [] } = await failure('causes/manyMore')
  assert.is(several.length, 11)
  assert.is(several.at(-1)?.message, '… 30 more errors')
})

details('end where a cause contains itself', async ({ failure }) => {
  assert.equal(messagesOf(await failure('causes/cycle')), ['and', 'An error that contains this one'])
})

details('contain the name of the class of an error that sets none', async ({ failure }) => {
  const { name, cause } = await failure('causes/unnamed')
  assert.equal([name, cause?.name], ['DeclinedError', 'Error'])
})

details('contain a cause that is no error as text', async ({ failure }) => {
  assert.equal((await failure('causes/text')).cause, { message: 'only text' })
})

details('contain the own fields as small JSON, without secrets and getters', async ({ failure }) => {
  const { fields = {} } = await failure('causes/fields')
  const { long, self, list, ...rest } = fields
  assert.equal(rest, {
    code: 11000,
    big: '10',
    when: '1970-01-01T00:00:00.000Z',
    nan: 'NaN',
    map: '[Map]',
    nested: { Authorization: '***' },
    apiKey: '***',
    url: 'https://a.example/b',
  })
  assert.is(String(long).length, 1024)
  assert.equal(self, { n: 1, self: { n: 1, self: { n: 1, self: { n: 1, self: '…' } } } })
  assert.equal(list, [1, [2, [3, [4, '…']]]])
})

details('contain `errors` that is no list as a field', async ({ failure }) => {
  const { fields, errors: several } = await failure('causes/invalid')
  assert.equal([fields, several], [{ errors: { name: 'is required' } }, undefined])
})

details('are limited in their size', async ({ failure }) => {
  const error = await failure('causes/huge')
  assert.is(error.message.length, 8192)
  assert.ok((error.stack ?? '').length <= 16_384)
  const { message: _, stack: __, ...rest } = error
  assert.ok(JSON.stringify(rest).length < 33_000, `got ${JSON.stringify(rest).length}`)
  assert.ok(Object.keys(error.fields ?? {}).length > 10)
})

details('are left out where reading them throws', async ({ failure }) => {
  const { message, name, fields, cause, errors: several, location } = await failure('causes/hostile')
  assert.equal([message, name], ['still here', 'Error'])
  assert.equal([fields, cause, several], [undefined, undefined, undefined])
  assert.is(location?.file, 'causes.js')
})

details('survive a cause that refuses to be read', async ({ failure }) => {
  const { message, cause } = await failure('causes/proxied')
  assert.is(message, 'with a proxy')
  assert.type(cause?.message, 'string')
})

details('contain no path of the node', async ({ failure, cacheDir }) => {
  const error = await failure('causes/hostFile')
  assert.equal([error.fields?.['code'], error.fields?.['path']], ['ENOENT', 'missing.txt'])
  assert.not.match(JSON.stringify(error), cacheDir)
  assert.match(error.message, /'missing.txt': the build does not contain it; `svc.assets` in package.json/)
})

details('contain no value of context', async ({ failure }) => {
  const error = await failure('causes/leaks', { onHostCall: () => Promise.resolve('hunter2-hunter2') })
  assert.equal(
    [error.cause?.message, error.fields],
    ['with ***', { used: '***', nested: { '***': ['***'] } }],
  )
  assert.not.match(JSON.stringify(error), 'hunter2')
})

details('of a stack overflow are reported', async ({ failure }) => {
  const { name, location } = await failure('causes/overflow')
  assert.equal([name, location?.file], ['RangeError', 'causes.js'])
})

details.run()
