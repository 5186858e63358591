import fc from 'fast-check'
import { randomOf } from '../support/randomOf.ts'
import { momentsOf, play } from './play.ts'
import type { Subject } from './subject.ts'
import { type Fault, openWorld } from './world.ts'

/** Moments of one scenario. */
const LONGEST = 60
/** Scenarios that share one event store. */
const SCENARIOS = 10

interface Check {
  /** The number of commands after which no further scenario begins. */
  readonly commands: number
  readonly seed: number
  readonly fault?: Fault
  /** False: reports the scenario that failed as it is. */
  readonly shrinks?: boolean
  /** Called with the number of commands that were answered. */
  readonly onCommands?: (count: number) => void
}

/**
 * Plays scenarios of a subject until enough commands were answered. Resolves with null, or with the difference that was
 * found and its shortest scenario.
 */
export const differenceIn = async <State, Command>(
  subject: Subject<State, Command>,
  { commands, seed, fault, shrinks = true, onCommands = () => {} }: Check,
): Promise<string | null> => {
  let answered = 0
  const count = (more: number): void => {
    answered += more
    onCommands(more)
  }
  for (let round = 0; answered < commands; round++) {
    const roundSeed = (seed + round) | 0
    const world = await openWorld(randomOf(roundSeed), fault)
    try {
      const property = fc.asyncProperty(
        momentsOf(subject, { minLength: LONGEST / 2, maxLength: LONGEST }),
        async (moments) => {
          if (answered < commands) await play(subject, world, moments, count)
        },
      )
      const details = await fc.check(property, {
        seed: roundSeed,
        numRuns: SCENARIOS,
        endOnFailure: !shrinks,
      })
      if (details.failed) {
        const sent = JSON.stringify(details.counterexample?.[0])
        return `${subject.name}, seed ${roundSeed}: ${String(details.errorInstance)}\nscenario: ${sent}`
      }
    } finally {
      await world.close()
    }
  }
  return null
}
