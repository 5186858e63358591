import { keyUse } from '../../src/domain/keyUse.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(keyUse, { env_id: 'e', correlation_id: 'c' })
const at = (second: number) =>
  `2026-05-01T10:0${Math.floor(second / 60)}:${String(second % 60).padStart(2, '0')}.000Z`
const key = { service_key_id: 's', api_key_id: 'k' }
const use = (second: number) => ({ type: 'UseServiceKey', ...key, now: at(second) }) as const
const used = (second: number) => ({ type: 'ServiceKeyUsed', ...key, at: at(second) }) as const

const uses = suite('the uses of a service key')
uses('are recorded at most once a minute', () => {
  given().when(use(0)).then(used(0))
  given(used(0)).when(use(59)).then()
  given(used(0)).when(use(60)).then(used(60))
})
uses.run()
