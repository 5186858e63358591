import { calls } from '../../src/domain/calls.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(calls, { env_id: 'e', correlation_id: 'c' })
const counted = (day: string) => ({ type: 'CallDayCounted', env_id: 'e', day, runs: 2, bytes: 3 }) as const
const count = (day: string) => ({ ...counted(day), type: 'CountDay' }) as const
const expired = (before: string) => ({ type: 'CallsExpired', env_id: 'e', before }) as const
const expire = (before: string) => ({ ...expired(before), type: 'ExpireCalls' }) as const

const rules = suite('the calls of an environment')
rules('a day is counted once, in order', () => {
  given().when(count('2026-05-01')).then(counted('2026-05-01'))
  given(counted('2026-05-01')).when(count('2026-05-01')).then()
  given(counted('2026-05-02')).when(count('2026-05-01')).then()
  given(counted('2026-05-01')).when(count('2026-05-02')).then(counted('2026-05-02'))
})
rules('the runs of a day are counted once, in order', () => {
  const tallies = { event: { n: [0, 2, 0, 0, 0], d: { 1: 2 } } }
  const runsOf = (day: string) => ({ type: 'RunDayCounted', env_id: 'e', day, tallies }) as const
  const countRuns = (day: string) => ({ ...runsOf(day), type: 'CountRuns' }) as const
  given(counted('2026-05-03')).when(countRuns('2026-05-01')).then(runsOf('2026-05-01'))
  given(runsOf('2026-05-01')).when(countRuns('2026-05-01')).then()
  given(runsOf('2026-05-02')).when(countRuns('2026-05-01')).then()
})
rules('a day expires once, and is not kept again by a later plan', () => {
  given().when(expire('2026-05-01')).then(expired('2026-05-01'))
  given(expired('2026-05-02')).when(expire('2026-05-01')).then()
  given(expired('2026-05-01'), counted('2026-05-03')).when(expire('2026-05-01')).then()
})
rules('a day expires in several facts, each of which removes more than the one before', () => {
  const part = (before: string, up_to: string) => ({ ...expired(before), up_to }) as const
  const next = (up_to: string) => ({ ...expire('2026-05-02'), up_to }) as const
  const [a, b] = [part('2026-05-02', 'a'), part('2026-05-02', 'b')]
  given().when(next('a')).then(a)
  given(a).when(next('b')).then(b)
  given(b).when(next('a')).then()
  given(b).when(expire('2026-05-01')).then()
  given(b).when(expire('2026-05-02')).then(expired('2026-05-02'))
  given(b).when(expire('2026-05-03')).then(expired('2026-05-03'))
  given(b, expired('2026-05-02')).when(next('c')).then()
})
rules.run()
