import fc from 'fast-check'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import type { Scenario, Subject } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'

interface Command {
  readonly request: string
}

/** The requests that have published their event. */
type State = Record<string, true>

/** More requests than a stream remembers. */
const REQUESTS = 150

/** Events under many keys on one stream: a repeat publishes nothing, however many came since. */
export const busyStream: Subject<State, Command> = {
  name: 'busy stream',
  initial: {},
  commands: fc.record({ request: fc.nat(REQUESTS - 1).map((n) => `r${n}`) }),

  step(state, { request }) {
    state[request] = true
    return request
  },

  view: (state) => Object.keys(state).sort(),
  repeats: () => true,
  excuse: () => ({}),
  open: (world) => open(world),
}

const open = async (world: World): Promise<Scenario<Command>> => {
  const { env_id } = await world.openEnv()
  const ids = new Ids()
  const wanted = { event_type: 'ordered', event_data: null, source: 'api' }
  const { event } = await publishEvent(world.node(0), wanted, ids.caller(env_id, 'first'))
  const { stream_id } = event
  /** Each request has an id of its own time, from its first attempt on. */
  const bases = new Map<string, string>()
  const baseOf = (request: string): string => {
    const base = bases.get(request) ?? newId()
    bases.set(request, base)
    return base
  }
  const eventId = (request: string): string => derivedIdBeside(baseOf(request), 'event')
  const nameOf = (event_id: string): string =>
    [...bases.keys()].find((request) => eventId(request) === event_id) ?? event_id

  const perform = async (node: ModelNode, { request }: Command): Promise<unknown> => {
    const newId = (what: string) => derivedIdBeside(baseOf(request), what)
    const { cause } = ids.caller(env_id, 'busy')
    const published = await publishEvent(node, { ...wanted, stream_id }, { cause, newId })
    return nameOf(published.event.event_id)
  }

  const observe = async (node: ModelNode): Promise<unknown> => {
    const stored: string[] = []
    for await (const { event } of node.store.read(`stream-${stream_id}`))
      if (event.type === 'EventPublished') stored.push(event.event_id)
    return stored.slice(1).map(nameOf).sort()
  }

  return { perform, observe }
}
