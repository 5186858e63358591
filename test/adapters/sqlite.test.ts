import * as assert from 'uvu/assert'
import { isDamage, isLoss, unavailable } from '../../src/adapters/embedded/sqlite.ts'
import { suite } from '../support/suite.ts'

const errors = suite('errors of SQLite')

const errorOf = (errcode: number) => Object.assign(new Error('failed'), { errcode })
const [CORRUPT_INDEX, NOTADB, IOERR_READ, IOERR_WRITE, FULL] = [779, 26, 266, 778, 13]

errors('name the loss of a part of a file: damage, or a read that fails', () => {
  for (const code of [CORRUPT_INDEX, NOTADB, IOERR_READ]) {
    assert.ok(isLoss(errorOf(code)), String(code))
    assert.ok(isLoss(unavailable(errorOf(code))), String(code))
  }
  for (const code of [IOERR_WRITE, FULL]) assert.not(isLoss(errorOf(code)), String(code))
  assert.not(isLoss(new Error('failed')))
})

errors('of the disk are no damage of the log, because a later read may succeed', () => {
  assert.ok(isDamage(errorOf(NOTADB)))
  assert.not(isDamage(errorOf(IOERR_READ)))
})
errors.run()
