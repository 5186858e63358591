import * as assert from 'uvu/assert'
import { cut } from '../../../src/sandbox/child/thrown.ts'
import { ownFieldsOf } from '../../../src/sandbox/child/ownFields.ts'
import { suite } from '../../support/suite.ts'

const thrown = suite('a text of an error that is too long')

thrown('is cut between two characters', () => {
  assert.equal(
    [3, 4, 5].map((length) => cut('x😀yz', length)),
    ['x…', 'x😀…', 'x😀yz'],
  )
  const { text } = ownFieldsOf({ text: `${'x'.repeat(1022)}😀y` }, new Set(), {
    room: { left: 5000 },
    shown: (each) => each,
  }) as { readonly text: string }
  assert.is(text, `${'x'.repeat(1022)}…`)
})

thrown.run()
