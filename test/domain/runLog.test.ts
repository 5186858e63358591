import { runLog } from '../../src/domain/runLog.ts'
import type { EventOf } from '../../src/events/index.ts'
import type { LogLine } from '../../src/events/runLog.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(runLog, { env_id: 'env', correlation_id: 'c' })
const lines: LogLine[] = [{ at: '2026-05-01T10:00:00.000Z', source: 'stdout', text: 'hello' }]
const logged = (part: number, writer = 'w'): EventOf<'RunLogged'> => ({
  type: 'RunLogged',
  run_id: 'r',
  writer,
  part,
  lines,
})
const log = (part: number, writer = 'w') => ({ type: 'LogLines', run_id: 'r', writer, part, lines }) as const

const logs = suite('what a run printed')
logs('is stored part by part', () => {
  given().when(log(0)).then(logged(0))
  given(logged(0)).when(log(1)).then(logged(1))
})
logs('is stored once', () => given(logged(0), logged(1)).when(log(1)).then())
logs('continues after a part that was left out', () => given(logged(0)).when(log(2)).then(logged(2)))
logs('continues with the parts of the next writer, when the run was returned', () => {
  given(logged(0), logged(1)).when(log(0, 'next')).then(logged(0, 'next'))
  given(logged(0), logged(0, 'next')).when(log(0)).then()
})
logs('of version 0.1.0 has no writer', () => {
  const { writer: _, ...earlier } = logged(0)
  given(earlier).when(log(0)).then(logged(0))
})
logs.run()
