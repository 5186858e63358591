import type { Recorded } from '../events/event.ts'
import type { DomainEvent, EventOf } from '../events/index.ts'
import type { CommandDeps } from './deps.ts'

/** Reads all facts of some types, from the start of the log to its present end. It may take minutes in a long log. */
export async function* storedFacts<Type extends DomainEvent['type']>(
  { store }: Pick<CommandDeps, 'store'>,
  types: readonly Type[],
): AsyncGenerator<Recorded<EventOf<Type>>> {
  const head = await store.head()
  const unread = new AbortController()
  for await (const { events, cursor, caughtUp } of store.subscribe({ types, signal: unread.signal })) {
    yield* events as Recorded<EventOf<Type>>[]
    if (caughtUp || cursor >= head) return
  }
}
