import * as assert from 'uvu/assert'
import { listBytes, parseList, sha256Of } from '../../src/content/jsonList.ts'
import { suite } from '../support/suite.ts'

/** Texts that a search for the ends of elements could take for such ends. */
const DECEIVING = ['},{"ns":', '\\', '\\\\"', '"', ']', '[', ',', '\u2028', 'ü'.repeat(9), '\\u0022},{']
const elements = Array.from({ length: 5000 }, (_, n) => ({
  ns: DECEIVING[n % DECEIVING.length],
  deep: [[{ [DECEIVING[(n * 7) % DECEIVING.length] ?? '']: [1, null, 'x'.repeat(n % 100)] }], [], {}],
}))

const list = suite('a list in JSON')
list('is written like by JSON.stringify, and read in parts as it was', async () => {
  for (const value of [[], [1], ['a,b', 'c]'], [[], [[]]], elements]) {
    const bytes = await listBytes(value)
    assert.is(bytes.toString(), JSON.stringify(value))
    assert.equal(await parseList(bytes), value)
  }
})
list('may contain white space', async () => {
  assert.equal(await parseList(Buffer.from(JSON.stringify(elements, null, 2))), elements)
  assert.equal(await parseList(Buffer.from(' \n[ ]\n')), [])
})
for (const text of [
  '',
  '{}',
  '[',
  ']',
  '[1',
  '1]',
  '[1]]',
  '[[1]',
  '[1,]',
  'x[1]',
  '[1]x',
  '[1}{2]',
  '"[1]"',
  '[1],[2]',
])
  list(`is no other JSON, such as ${text || 'nothing'}`, async () => {
    const refused = await parseList(Buffer.from(text)).then(
      () => null,
      (error: unknown) => error,
    )
    assert.instance(refused, SyntaxError)
  })
list('has the SHA-256 of all its bytes', async () => {
  const bytes = Buffer.alloc(3 << 20, 'abc')
  const digest = Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')
  assert.is(await sha256Of(bytes), digest)
})
list.run()
