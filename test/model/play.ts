import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { isAppError } from '../../src/errors.ts'
import { type Done, statesAfter, stepOf } from './linearize.ts'
import type { Reply, Scenario, Subject } from './subject.ts'
import type { ModelNode, World } from './world.ts'

/** A command, the node that it is sent to, and the failure of that node in the middle of it. */
export interface Sent<Command> {
  readonly command: Command
  readonly node: number
  readonly failure: Failure | null
}

/** One append of a node to the log fails, before or after its facts are stored. */
export interface Failure {
  readonly append: number
  readonly stored: boolean
  /** Whether the node continues afterwards; otherwise it is dead. */
  readonly lives: boolean
}

/** The commands of a scenario: those of one moment are sent at once. */
export type Moments<Command> = readonly (readonly Sent<Command>[])[]

/** The most commands of one moment: the number of their orders is bounded. */
const AT_ONCE = 4

export const momentsOf = <State, Command>(
  subject: Subject<State, Command>,
  length: { readonly minLength?: number; readonly maxLength: number },
): fc.Arbitrary<Moments<Command>> => {
  const failing = fc.record({ append: fc.nat(3), stored: fc.boolean(), lives: fc.boolean() })
  const failure = fc.option(failing, { freq: 4, nil: null })
  const sent = fc.record({ command: subject.commands, node: fc.nat(1), failure })
  const alone = sent.map((one) => [one])
  const together = fc.array(
    sent.map((one) => ({ ...one, failure: null })),
    { minLength: 2, maxLength: AT_ONCE },
  )
  const moment = fc.oneof({ weight: 2, arbitrary: alone }, { weight: 3, arbitrary: together })
  // A bias to short scenarios and first values would create little to act on.
  const moments = fc.noBias(fc.array(moment, { ...length, size: 'max' }))
  return moments.map((some) => named(subject, some))
}

const named = <State, Command>(
  subject: Subject<State, Command>,
  moments: Moments<Command>,
): Moments<Command> => {
  const earlier: Command[] = []
  return moments.map((moment, at) => {
    const sent = moment.map((one, i) => {
      const command = subject.named?.(one.command, `${at}.${i}`, earlier) ?? one.command
      return { ...one, command }
    })
    earlier.push(...sent.map(({ command }) => command))
    return sent
  })
}

/** Plays a scenario. Rejects at the first reply, or the first thing read, that the model cannot explain. */
export const play = async <State, Command>(
  subject: Subject<State, Command>,
  world: World,
  moments: Moments<Command>,
  onCommands: (count: number) => void = () => {},
): Promise<void> => {
  const scenario = await subject.open(world)
  let states: State[] = [subject.initial]
  for (const [at, moment] of moments.entries()) {
    const done = (await Promise.all(moment.map((sent) => send(subject, world, scenario, sent)))).flat()
    onCommands(moment.length)
    const next = statesAfter(subject, states, done)
    if (next.length === 0)
      throw difference(subject, at, done, states, 'No order of these commands explains the replies')
    const seen = await scenario.observe(world.node(at % 2))
    const right = next.filter((state) => isDeepStrictEqual(subject.view(state), seen))
    if (right.length === 0)
      throw difference(
        subject,
        at,
        done,
        states,
        [
          `The service has ${JSON.stringify(seen)}`,
          ...next.map((state) => `expected    ${JSON.stringify(subject.view(state))}`),
        ].join('\n'),
      )
    states = right
  }
}

/** Sends a command; after a failure of its node again, to the other one, with the same ids. */
const send = async <State, Command>(
  subject: Subject<State, Command>,
  world: World,
  scenario: Scenario<Command>,
  { command, node, failure }: Sent<Command>,
): Promise<Done<Command>[]> => {
  if (!failure || !subject.repeats(command))
    return [{ command, reply: await replyOf(scenario, world.node(node), command) }]
  const failing = world.failing(failure)
  const first = await replyOf(scenario, failing, command)
  const reply = await replyOf(scenario, world.node(1 - node), command)
  return [
    { command, reply: 'refused' in first && first.refused === 'unavailable' ? null : first },
    { command, reply, after: 0 },
  ]
}

/** Any other error than a refusal is a fault of the service, and ends the scenario. */
const replyOf = async <Command>(
  scenario: Scenario<Command>,
  node: ModelNode,
  command: Command,
): Promise<Reply> => {
  try {
    return { ok: (await scenario.perform(node, command)) ?? null }
  } catch (error) {
    if (isAppError(error)) return { refused: error.code }
    throw error
  }
}

const difference = <State, Command>(
  subject: Subject<State, Command>,
  at: number,
  done: readonly Done<Command>[],
  states: readonly State[],
  text: string,
): Error => {
  const lines = done.map(({ command, reply }) => {
    const alone = states.map((state) => JSON.stringify(stepOf(subject, state, command).reply))
    return `${JSON.stringify(command)} got ${JSON.stringify(reply)}, alone ${alone.join(' or ')}`
  })
  return new Error(
    [`${subject.name}, moment ${at}:`, ...lines, text, `before: ${JSON.stringify(states)}`].join('\n'),
  )
}
