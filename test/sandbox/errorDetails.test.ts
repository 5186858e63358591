import * as assert from 'uvu/assert'
import { RawJson } from '../../src/events/rawJson.ts'
import { errorDetails } from '../../src/sandbox/errorDetails.ts'
import { ProtocolViolation } from '../../src/sandbox/frames.ts'
import { parseChildFrame } from '../../src/sandbox/protocol.ts'
import { suite } from '../support/suite.ts'

const details = suite('the details of an error from a child')

const nested = (levels: number): object =>
  levels === 0 ? { message: 'last' } : { message: 'x', cause: nested(levels - 1) }
const fieldsOf = (levels: number): unknown => (levels === 0 ? 1 : [fieldsOf(levels - 1)])

details('are kept as they are', () => {
  const given = {
    name: 'PaymentError',
    location: { file: 'a.ts', line: 3, column: 9, snippet: '\tthrow error' },
    fields: { status: 402, list: [{ a: null }] },
    cause: { ...nested(4), code: 'E', stack: 'at a', fields: {} },
    errors: [{ message: 'one', code: 7, errors: [{ message: 'two' }] }],
  }
  assert.equal(errorDetails(given), given)
  const frame = { type: 'failure', id: 1, code: 'function_failed', message: 'm', details: given }
  assert.equal(parseChildFrame(JSON.stringify(frame)), frame)
})

const violations: Record<string, unknown> = {
  'no object': 'text',
  'a list': [],
  'a name that is no text': { name: 1 },
  'a cause that is no object': { cause: 'text' },
  'a cause without a message': { cause: {} },
  'a code that is an object': { cause: { message: 'x', code: {} } },
  'six causes': { cause: nested(5) },
  'six levels of errors': { errors: [{ message: 'x', errors: [nested(4)] }] },
  'errors that are no list': { errors: {} },
  'fields that are no object': { fields: [] },
  'deep fields': { fields: { a: fieldsOf(8) } },
  'a line that is no number': { location: { file: 'a', line: '1', column: 1 } },
  'a column of zero': { location: { file: 'a', line: 1, column: 0 } },
  'a location without a file': { location: { line: 1, column: 1 } },
}
for (const [what, given] of Object.entries(violations)) {
  details(`break the protocol with ${what}`, () => {
    assert.throws(
      () => errorDetails(given),
      (error: unknown) => error instanceof ProtocolViolation,
    )
  })
}

details('are left out when they are too large', () => {
  assert.equal(errorDetails({ name: 'E', fields: { text: 'x'.repeat(33 << 10) } }), {})
  assert.equal(errorDetails(new RawJson(Buffer.from('{}'))), {})
  assert.equal(errorDetails({ name: 'E', fields: { many: Array.from({ length: 5000 }, () => ({})) } }), {})
})

details('have no control characters in their location, and short texts', () => {
  const file = `a\u001b[2J\n${'b'.repeat(1000)}`
  const { location } = errorDetails({
    location: { file, line: 1, column: 1, snippet: '\u0007x'.repeat(200) },
  })
  assert.match(location?.file ?? '', /^a\ufffd\[2J\ufffdb+$/)
  assert.equal([location?.file.length, location?.snippet?.length], [512, 200])
  assert.not.match(location?.snippet ?? '', '\u0007')
})

details.run()
