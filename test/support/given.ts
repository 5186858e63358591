import * as assert from 'uvu/assert'
import type { Decider } from '../../src/domain/decider.ts'
import { type ErrorCode, isAppError } from '../../src/errors.ts'
import type { Metadata } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'

/**
 * A rule in words: `given(decider, metadata)(...facts).when(command).then(...facts)` or `.refuses(code)`.
 * The facts have revisions from 0. `then()` without facts means that nothing changes.
 */
export const given =
  <State, Command, Event extends DomainEvent>(decider: Decider<State, Command, Event>, metadata: Metadata) =>
  (...facts: readonly DomainEvent[]) => ({
    when(command: Command) {
      const state = facts.reduce(
        (state, event, revision) => decider.evolve(state, { event, revision, metadata }),
        decider.initial(),
      )
      return {
        then: (...expected: readonly Event[]) => assert.equal(decider.decide(command, state), expected),
        refuses(code: ErrorCode) {
          let decided: readonly Event[]
          try {
            decided = decider.decide(command, state)
          } catch (error) {
            if (isAppError(error, code)) return
            throw error
          }
          assert.unreachable(`Expected ${code}, got ${JSON.stringify(decided)}`)
        },
      }
    },
  })
