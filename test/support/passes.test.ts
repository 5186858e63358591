import { existsSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { LONGEST } from './passes.ts'
import { suite } from './suite.ts'

const order = suite('the order of test files')

order('begins with files that exist', () => {
  assert.equal(
    LONGEST.filter((file) => !existsSync(file)),
    [],
  )
})

order.run()
