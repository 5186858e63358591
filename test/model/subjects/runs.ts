import fc from 'fast-check'
import type { Subject } from '../subject.ts'
import { ALONE, BUILDS, CHILDREN, EVENTS, OPENING, type RunsCommand, WORKERS } from './runsSetup.ts'
import { openRuns } from './runsReal.ts'
import { type RunsState, step, view } from './runsModel.ts'

/** Most commands are about few events, so that their runs live long lives. */
const event = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('e0', 'e3', 'e11') },
  { weight: 3, arbitrary: fc.constantFrom(...Object.keys(EVENTS)) },
)
const worker = fc.constantFrom('w0', 'w0', 'w0', ...WORKERS)
const build = fc.constantFrom(...Object.keys(BUILDS))
/** A run of an event or a request, or one of its next attempts. */
const run = fc
  .tuple(
    fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom('e0/first', 'e0/second', 'e3/called', 'e11/first', 'web0') },
      {
        weight: 3,
        arbitrary: fc.tuple(event, fc.constantFrom('first', 'second', 'called')).map((at) => at.join('/')),
      },
      { weight: 2, arbitrary: fc.constantFrom(...ALONE, ...Object.keys(CHILDREN)) },
    ),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant('') },
      { weight: 2, arbitrary: fc.constantFrom('!', '!', '!!', '!!!') },
    ),
  )
  .map((parts) => parts.join(''))
const op = <const T extends string>(...values: T[]) => fc.constantFrom(...values)

const initial: RunsState = { deployed: 'many', events: {}, runs: {}, asked: {}, output: {} }
for (const command of OPENING) step(initial, command)

/** Events, their runs and the workers that claim them. */
export const runs: Subject<RunsState, RunsCommand> = {
  name: 'runs',
  initial,

  commands: fc.oneof(
    { weight: 2, arbitrary: fc.record({ op: op('deploy'), build }) },
    { weight: 8, arbitrary: fc.record({ op: op('publish'), event, claim: fc.boolean() }) },
    { weight: 8, arbitrary: fc.record({ op: op('dispatch'), event, worker }) },
    { weight: 1, arbitrary: fc.record({ op: op('abandonEvent'), event }) },
    { weight: 1, arbitrary: fc.record({ op: op('tick'), run: op('tick0', 'tick1') }) },
    { weight: 1, arbitrary: fc.record({ op: op('request'), run: op('web0', 'web1'), claim: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ op: op('child'), run: fc.constantFrom(...Object.keys(CHILDREN)) }) },
    { weight: 1, arbitrary: fc.record({ op: op('output'), run: op('tick0', 'web0'), part: fc.nat(3) }) },
    {
      weight: 8,
      arbitrary: fc.record({ op: op('claim', 'claim', 'claim', 'begin', 'return'), run, worker }),
    },
    { weight: 8, arbitrary: fc.record({ op: op('abandonRun', 'retry', 'retry', 'cancel', 'emit'), run }) },
    {
      weight: 8,
      arbitrary: fc.record({
        op: op('end'),
        run,
        worker,
        outcome: op('succeeded', 'succeeded', 'failed', 'failed', 'lost'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: op('loseWorker'), worker }) },
  ),

  step,
  view,
  repeats: ({ op }) => op !== 'loseWorker' && op !== 'child',

  excuse: () => ({}),

  open: openRuns,
}
