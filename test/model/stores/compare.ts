import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { OpenEventStore } from '../../contracts/eventStore.ts'
import { type StoreCommand, storeCommands } from './commands.ts'
import { playerOn } from './player.ts'

/** Sends the same commands to two stores. Rejects at the first command that they answer differently. */
const compare = async (
  [one, other]: readonly [OpenEventStore, OpenEventStore],
  commands: readonly StoreCommand[],
): Promise<void> => {
  const [onOne, onOther] = [playerOn(one), playerOn(other)]
  for (const [at, command] of commands.entries()) {
    const replies = await Promise.all([onOne(command), onOther(command)])
    if (!isDeepStrictEqual(replies[0], replies[1]))
      throw new Error(
        [`command ${at}: ${JSON.stringify(command)}`, ...replies.map((reply) => JSON.stringify(reply))].join(
          '\n',
        ),
      )
  }
}

/** The store stays the current one when it is opened again. */
const lasting = (opened: OpenEventStore): OpenEventStore => {
  let { store } = opened
  return {
    get store() {
      return store
    },
    async reopen() {
      store = await opened.reopen()
      return store
    },
    close: () => opened.close(),
  }
}

const LONGEST = 60

/** Resolves with null if both stores answer random commands alike, or with the first difference. */
export const differenceBetween = async (
  stores: readonly [OpenEventStore, OpenEventStore],
  { scenarios, seed }: { readonly scenarios: number; readonly seed: number },
  onCommands: (count: number) => void = () => {},
): Promise<string | null> => {
  const handles = [lasting(stores[0]), lasting(stores[1])] as const
  const property = fc.asyncProperty(storeCommands(LONGEST), async (commands) => {
    await compare(handles, commands)
    onCommands(commands.length)
  })
  const details = await fc.check(property, { seed, numRuns: scenarios })
  return details.failed
    ? `seed ${seed}: ${String(details.errorInstance)}\ncommands: ${JSON.stringify(details.counterexample?.[0])}`
    : null
}
