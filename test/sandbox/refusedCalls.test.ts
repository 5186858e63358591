import * as assert from 'uvu/assert'
import type { HostCall } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { openWorkbench, resultOf } from './harness.ts'

const CALLS = `import { emit, files } from 'svc'
const emitted = (value) => emit('page', value).then(() => 'ok', ({ name, message }) => name + ': ' + message)

export const tooLarge = async () => [await emitted('x'.repeat(9 << 20)), await emitted(1)]
export const atOnce = () => Promise.all([emitted('x'.repeat(9 << 20)), emitted(1)])
export const tooDeep = async () =>
  [await emitted(JSON.parse('['.repeat(1000) + ']'.repeat(1000))), await emitted(1)]
export const throwing = async () =>
  [await emitted({ toJSON: () => { throw new Error('no JSON today') } }), await emitted(1)]
export const calling = async () => {
  let inner
  const outer = await emitted({ toJSON: () => { inner = emitted('inner'); return 'outer' } })
  return [outer, await inner, await emitted(1)]
}
export const listed = async () => {
  const refusals = []
  for (const options of ['images/', null, ['images/'], 7])
    refusals.push(await files.list(options).then(() => 'ok', ({ name, message }) => name + ': ' + message))
  return [...refusals, await emitted(1)]
}
export const pid = () => process.pid`

const refused = suite('a call of a function that the process itself refuses')

/** What the function returned, and what it emitted. Its process is alive afterwards. */
const run = async (name: string): Promise<{ returned: unknown; emitted: unknown[] }> => {
  const { runtime, invoke } = await openWorkbench({ 'a.js': CALLS })
  const emitted: unknown[] = []
  const onHostCall = (request: HostCall) => {
    if (request.op === 'emit') emitted.push(request.payload)
    return Promise.resolve(null)
  }
  try {
    const before = await resultOf(invoke('a/pid'))
    const returned = await resultOf(invoke(`a/${name}`, { onHostCall }))
    assert.is(await resultOf(invoke('a/pid')), before)
    return { returned, emitted }
  } finally {
    await runtime.close()
  }
}

for (const [name, message] of Object.entries({
  tooLarge: 'RangeError: Expected at most 8388608 bytes of JSON, got 9437',
  atOnce: 'RangeError: Expected at most 8388608 bytes of JSON, got 9437',
  tooDeep: 'RangeError: Expected a call nested at most 1000 levels deep, with its values',
  throwing: 'Error: no JSON today',
}))
  refused(`rejects with the reason, and the next call is made: ${name}`, async () => {
    const { returned, emitted } = await run(name)
    const [first, second] = returned as readonly [string, string]
    assert.ok(first.startsWith(message), first)
    assert.equal([second, emitted], ['ok', [1]])
  })

refused('may be made while the JSON of another call is built', async () => {
  assert.equal(await run('calling'), { returned: ['ok', 'ok', 'ok'], emitted: ['inner', 'outer', 1] })
})

refused('names options of files.list that are no object', async () => {
  const expected = 'TypeError: Expected files.list() with an object of options, got '
  const { returned } = await run('listed')
  assert.equal(returned, [...['string', 'null', 'an array', 'number'].map((got) => expected + got), 'ok'])
})

refused.run()
