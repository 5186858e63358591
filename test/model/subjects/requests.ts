import fc from 'fast-check'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { Idempotency } from '../../../src/commands/idempotency.ts'
import { newId } from '../../../src/ids.ts'
import { silent } from '../../../src/logger.ts'
import { refuse, type Scenario, type Subject } from '../subject.ts'
import type { ModelNode, World } from '../world.ts'

interface Command {
  readonly key: string
  readonly body: 'one' | 'two' | 'invalid'
}

/** The request of each key; `answered`: its reply is stored. */
type State = Record<string, { body: Command['body']; answered: boolean }>

/** Requests that publish an event under an `Idempotency-Key`. */
export const requests: Subject<State, Command> = {
  name: 'requests',
  initial: {},
  commands: fc.record({
    key: fc.nat(39).map((n) => `key-${n}`),
    body: fc.oneof(
      { weight: 10, arbitrary: fc.constant('one') },
      { weight: 2, arbitrary: fc.constantFrom('two', 'invalid') },
    ),
  }),

  step(state, { key, body }) {
    const known = (state[key] ??= { body, answered: false })
    if (known.body !== body) refuse('idempotency_key_reused')
    if (body === 'invalid') refuse('bad_request')
    const replayed = known.answered
    known.answered = true
    return { event: key, replayed }
  },

  view: (state) => ({ events: Object.values(state).filter(({ answered }) => answered).length }),
  repeats: () => true,
  excuse: () => ({}),
  open: (world) => open(world),
}

const open = async (world: World): Promise<Scenario<Command>> => {
  const { env_id } = await world.openEnv()
  const nodes = new Map<ModelNode, Idempotency>()
  /** The id that the first reply of a key named. */
  const replied = new Map<string, string>()
  const onNode = (node: ModelNode): Idempotency => {
    const isLiving = node === world.node(0) || node === world.node(1)
    const holder = `${isLiving ? 'living' : 'dead'} ${nodes.size}`
    const known =
      nodes.get(node) ??
      new Idempotency({ ...node, logger: silent, holder, isGone: (other) => other.startsWith('dead') })
    nodes.set(node, known)
    return known
  }

  const perform = async (node: ModelNode, { key, body }: Command): Promise<unknown> => {
    const event = { event_type: body === 'invalid' ? '' : 'ordered', event_data: body, source: 'api' }
    const cause = { env_id, correlation_id: newId() }
    const { value, replayed } = await onNode(node).once(
      { key, scope: [env_id], request: body, cause },
      async (newId) => (await publishEvent(node, event, { cause, newId })).event.event_id,
    )
    const first = replied.get(key) ?? value
    replied.set(key, first)
    return { event: first === value ? key : value, replayed }
  }

  const observe = async ({ views }: ModelNode): Promise<unknown> => {
    await views.settled()
    return {
      events: (await views.events.find({ equal: { env_id }, sort: 'order', limit: 1, offset: 0 })).total,
    }
  }

  return { perform, observe }
}
