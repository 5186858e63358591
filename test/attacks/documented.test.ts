import { globSync, readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { DOCUMENT, idsIn } from './table.ts'

const documented = suite('the table of attacks')

/** The ids in the sources: each attack is an object with a literal `id`. */
const tried = (): string[] =>
  globSync('test/attacks/*.test.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\bid: '([AB]\/[^']+)'/g)].map(([, id = '']) => id),
  )

documented('names every attack that is tried, and no other', () => {
  assert.equal(idsIn(readFileSync(DOCUMENT, 'utf8')).sort(), tried().sort())
})

documented('has no attack twice', () => {
  assert.is(new Set(tried()).size, tried().length)
})

documented.run()
