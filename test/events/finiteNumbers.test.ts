import * as assert from 'uvu/assert'
import { tooLargeNumberIn } from '../../src/events/finiteNumbers.ts'
import { cpuOf } from '../support/cpuOf.ts'
import { suite } from '../support/suite.ts'

const numbers = suite('a number beyond a double')

const NINES = '9'.repeat(310)

for (const [json, path] of [
  ['{"a":[1,{"b":1e400}]}', 'a.1.b'],
  ['[-1e400]', '0'],
  [NINES, ''],
  [`{"a":-${NINES}.5}`, 'a'],
  ['{"a":1E+309,"b":1e999}', 'a'],
  [`{"\\"":"\\\\","a":[1e-999,1e400]}`, 'a.1'],
  [`{"a":"1e400","b":"\\"1e400","${NINES}":1e308}`, undefined],
  ['{"a":1e400,"a":1}', undefined],
  ['[0.00001e309]', undefined],
] as const)
  numbers(`is found in ${json.slice(0, 40)}: ${path ?? 'none'}`, () => {
    assert.is(tooLargeNumberIn(JSON.parse(json), json), path)
  })

numbers('is sought in no more than the time of the parse, if a text could be one', () => {
  const members = Array.from({ length: 60_000 }, (_, n) => `"k${n}":${n % 10}`).join()
  const json = `{"text":"1e400",${members}}`
  const value: unknown = JSON.parse(json)
  const parse = cpuOf(() => JSON.parse(json))
  const took = cpuOf(() => tooLargeNumberIn(value, json))
  assert.ok(took < parse, `${took} ms; the parse takes ${parse} ms`)
})

numbers.run()
