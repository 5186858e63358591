import { isAppError } from '../../../src/errors.ts'
import { type Cursor, type NewEvent, type Recorded, START } from '../../../src/events/event.ts'
import type { EventType } from '../../../src/events/index.ts'
import { newId } from '../../../src/ids.ts'
import type { Appended, EventStore, Expected } from '../../../src/ports/eventStore.ts'
import type { OpenEventStore } from '../../contracts/eventStore.ts'
import { fact, streamFact } from '../../contracts/eventStore/facts.ts'
import { eventsOf, gather } from '../../contracts/eventStore/gather.ts'
import { until } from '../../support/until.ts'
import type { Aim, StoreCommand, Types } from './commands.ts'

interface Past {
  readonly stream: number
  readonly events: readonly NewEvent[]
  readonly expected: Expected
}

const TYPES: Readonly<Record<Types, readonly EventType[] | undefined>> = {
  all: undefined,
  data: ['StreamDataEmitted'],
  created: ['StreamCreated'],
  none: ['OrgCreated'],
}
const LONG_S = 1_000_000

/** Performs commands on one store, and returns replies that are equal for equal stores: no ids, names or cursors. */
export const playerOn = (opened: OpenEventStore) => {
  let { store } = opened
  const base = newId()
  const envs = [newId(), newId()]
  const envOf = (stream: number): string => envs[stream % envs.length] ?? ''
  const nameOf = (stream: number): string => `t${stream}-${base}`
  /** The revision of each stream; -1 for an empty one. */
  const revisions = [-1, -1, -1, -1, -1]
  const past: Past[] = []
  /** The cursor of each appended fact that was reported, in the order of the log. */
  const cursors: Cursor[] = []
  /** What each group has got so far, and has acknowledged. */
  const groups = new Map<number, { got: Set<string>; acked: Set<string> }>()
  let facts = 0

  const newFacts = (stream: number, count: number): NewEvent[] =>
    Array.from({ length: count }, () =>
      facts++ % 4 === 0 ? streamFact(envOf(stream)) : fact(envOf(stream), `fact ${facts}`),
    )
  const expectedFor = (stream: number, aim: Aim): Expected => {
    const revision = revisions[stream] ?? -1
    if (aim === 'none') return 'none'
    if (aim === 'right') return revision < 0 ? 'none' : revision
    return aim === 'ahead' ? revision + 3 : Math.max(0, revision - 1)
  }
  const append = async (one: Past): Promise<unknown> => {
    const { stream, events, expected } = one
    const appended = await replyOf(() => store.append(nameOf(stream), events, expected))
    if (!('cursor' in appended)) return appended
    if (events.length === 0) return { revision: appended.revision } // it has no cursor of its own
    const { cursor, revision } = appended
    revisions[stream] = Math.max(revisions[stream] ?? -1, revision)
    const isKnown = cursors.includes(cursor)
    const isLast = cursor > (cursors.at(-1) ?? START)
    if (!isKnown && isLast && events.length > 0) cursors.push(cursor)
    return { revision, isKnown, isLast, at: cursors.indexOf(cursor) }
  }
  const described = ({ stream, revision, event, metadata, at, cursor }: Recorded): unknown => ({
    stream: stream.split('-')[0],
    revision,
    env: envs.indexOf(metadata.env_id ?? ''),
    type: event.type,
    payload: 'payload' in event ? event.payload : null,
    hasTime: !Number.isNaN(Date.parse(at)),
    isCursor: store.isCursor(cursor),
  })
  const own = (event: Recorded): boolean => event.stream.endsWith(base)

  const consume = async ({
    group,
    inFlight,
    acks,
  }: Extract<StoreCommand, { op: 'consume' }>): Promise<unknown> => {
    const known = groups.get(group) ?? { got: new Set<string>(), acked: new Set<string>() }
    groups.set(group, known)
    const env_id = envs[group % envs.length] ?? ''
    const wanted = await allOf(store, env_id)
    const retried = new Set<string>()
    const reader = gather(async function* (signal) {
      for await (const delivery of store.consume(`g${group}-${base}`, { env_id, inFlight, signal })) {
        const { id } = delivery.event
        known.got.add(id)
        const isLate = acks === 'retry' && !retried.has(id)
        if (isLate) {
          retried.add(id)
          delivery.retry()
        } else if (acks === 'some' && wanted.indexOf(id) % 2 === 1 && inFlight > wanted.length) {
          known.acked.delete(id) // it is delivered again to the next consumer
        } else {
          known.acked.add(id)
          delivery.ack()
        }
        yield id
      }
    })
    await until(() => wanted.every((id) => known.got.has(id)))
    if (acks === 'retry') await until(() => wanted.every((id) => known.acked.has(id)))
    await reader.stop()
    return { got: known.got.size, strangers: [...known.got].filter((id) => !wanted.includes(id)).length }
  }

  const perform = async (command: StoreCommand): Promise<unknown> => {
    switch (command.op) {
      case 'append': {
        const { stream, count, aim } = command
        const one = { stream, events: newFacts(stream, count), expected: expectedFor(stream, aim) }
        past.push(one)
        return append(one)
      }
      case 'repeat': {
        const one = past[command.append % Math.max(past.length, 1)]
        if (!one) return null
        const { events, stream } = one
        if (command.part === 'first') return append({ ...one, events: events.slice(0, 1) })
        if (command.part === 'more') return append({ ...one, events: [...events, ...newFacts(stream, 1)] })
        return append(one)
      }
      case 'pipeline': {
        const { stream, count } = command
        const from = revisions[stream] ?? -1
        const all = Array.from({ length: count }, (_, i) => ({
          stream,
          events: newFacts(stream, 1),
          expected: from + i < 0 ? ('none' as const) : from + i,
        }))
        past.push(...all)
        return Promise.all(all.map(append))
      }
      case 'race': {
        const { stream, count } = command
        const expected = expectedFor(stream, 'right')
        const name = `race ${facts++}`
        const tries = Array.from({ length: count }, () =>
          append({ stream, events: [fact(envOf(stream), name)], expected }),
        )
        return (await Promise.all(tries)).map((reply) => JSON.stringify(reply)).sort()
      }
      case 'notJson':
        return append({
          stream: command.stream,
          events: [fact(envOf(command.stream), 1n)],
          expected: expectedFor(command.stream, 'right'),
        })
      case 'read': {
        const { stream, from, limit } = command
        const read = store.read(nameOf(stream), { from, ...(limit !== null && { limit }) })
        return (await Array.fromAsync(read)).map(described)
      }
      case 'follow': {
        const { stream, after } = command
        const reader = gather((signal) => store.follow(nameOf(stream), { after, signal }))
        await until(() => reader.items.at(-1)?.caughtUp)
        await reader.stop()
        return eventsOf(reader.items).map(described)
      }
      case 'subscribe': {
        const { after, types, env } = command
        const from = after === null ? START : (cursors[after % Math.max(cursors.length, 1)] ?? START)
        const filter = {
          ...(TYPES[types] && { types: TYPES[types] }),
          ...(env !== null && { env_id: envs[env] ?? '' }),
        }
        const head = await store.head()
        const reader = gather((signal) => store.subscribe({ after: from, ...filter, signal }))
        await until(() => reader.items.some(({ cursor, caughtUp }) => caughtUp && cursor >= head))
        await reader.stop()
        const events = eventsOf(reader.items)
        const isOrdered = events.every(
          ({ cursor }, i) => i === 0 || cursor > (events[i - 1]?.cursor ?? START),
        )
        return {
          isOrdered,
          isAfter: events.every(({ cursor }) => cursor > from),
          events: events.filter(own).map(described),
        }
      }
      case 'consume':
        return consume(command)
      case 'expire':
        await store.expire(nameOf(command.stream), LONG_S)
        return store.isExpired(nameOf(command.stream))
      case 'ends': {
        const head = await store.head()
        const remembered = await store.remembered()
        return {
          reaches: head >= (cursors.at(-1) ?? START),
          isWhole: remembered <= head,
          isCursor: head === START || store.isCursor(head),
        }
      }
      case 'reopen':
        store = await opened.reopen()
        return null
      default:
        return command satisfies never
    }
  }

  return perform
}

/** The ids of all facts of an environment. */
const allOf = async (store: EventStore, env_id: string): Promise<string[]> => {
  const head = await store.head()
  const reader = gather((signal) => store.subscribe({ env_id, signal }))
  await until(() => reader.items.some(({ cursor, caughtUp }) => caughtUp && cursor >= head))
  await reader.stop()
  return eventsOf(reader.items).map(({ id }) => id)
}

/** The answer of an append; a refusal without the name of its stream. */
const replyOf = async (
  work: () => Promise<Appended>,
): Promise<Appended | { readonly refused: string; readonly expected: unknown; readonly actual: unknown }> => {
  try {
    return await work()
  } catch (error) {
    if (!isAppError(error)) throw error
    const { expected, actual } = error.data
    return { refused: error.code, expected, actual }
  }
}
