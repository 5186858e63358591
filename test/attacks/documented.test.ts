import { globSync, readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { DOCUMENT, idsIn } from './table.ts'

const documented = suite('the table of attacks')

const sources = globSync('test/attacks/*.test.ts').map((file) => readFileSync(file, 'utf8'))

/** Each attack is an object with a literal `id`, or with a template that begins with the name of its group. */
const matching = (pattern: RegExp): string[] =>
  sources.flatMap((source) => [...source.matchAll(pattern)].map(([, id = '']) => id))
const ids = matching(/\bid: '([AB]\/[^']+)'/g)
const groups = matching(/\bid: `([AB]\/[^$`]+)\$\{/g)

documented('names every attack that is tried, and no other', () => {
  const named = idsIn(readFileSync(DOCUMENT, 'utf8'))
  const isOfGroup = (id: string) => groups.some((group) => id.startsWith(group))
  assert.equal(named.filter((id) => !isOfGroup(id)).toSorted(), ids.filter((id) => !isOfGroup(id)).toSorted())
  for (const group of groups)
    assert.ok(
      named.some((id) => id.startsWith(group)),
      group,
    )
})

documented('has no attack twice', () => {
  assert.is(new Set(ids).size, ids.length)
})

documented.run()
