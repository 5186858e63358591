import * as assert from 'uvu/assert'
import type { SagaCore, Step } from '../../src/sagas/saga.ts'

/** A rule in words: `reacting(core).given(...inputs).when(input).at(now).then(...steps)`. */
export const reacting = <State, Input, Command>(core: SagaCore<State, Input, Command>) => ({
  given: (...before: readonly Input[]) => ({
    when: (input: Input) => ({
      at: (now: number) => ({
        then(...expected: readonly Step<Input, Command>[]) {
          const state = before.reduce((state, one) => core.react(state, one, now).state, core.initial)
          assert.equal(core.react(state, input, now).steps, expected)
        },
      }),
    }),
  }),
})
