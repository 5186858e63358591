import type { MongoClient } from 'mongodb'

/** The pause between two looks, milliseconds. */
const LOOK_MS = 1000
/** What several looks have seen is stuck: `address.ts` limits the silence of a connection to four seconds. */
const MOST_LOOKS = 8

/**
 * Calls `onStuck` once if a check of a server or a command never ends. The driver writes to a connection that ended in the same
 * moment, and then waits for its event `drain` without a limit. A check that never ends hides the server for good after
 * the next outage; a command that never ends keeps its place in the pool. Looks are counted, so a process that was
 * suspended finds nothing. Returns the function that ends the watch.
 */
export const watchStuck = (client: MongoClient, onStuck: () => void): (() => void) => {
  const looks = new Map<string, number>()
  const begin = (what: string): void => void looks.set(what, 0)
  const end = (what: string): void => void looks.delete(what)
  client
    .on('serverHeartbeatStarted', ({ connectionId }) => begin(connectionId))
    .on('serverHeartbeatSucceeded', ({ connectionId }) => end(connectionId))
    .on('serverHeartbeatFailed', ({ connectionId }) => end(connectionId))
    .on('serverClosed', ({ address }) => end(address))
    .on('connectionCheckedOut', (event) => begin(connectionOf(event)))
    .on('connectionCheckedIn', (event) => end(connectionOf(event)))
  const looking = setInterval(() => {
    for (const [what, seen] of looks) {
      if (seen === MOST_LOOKS) return stuck()
      looks.set(what, seen + 1)
    }
  }, LOOK_MS).unref()
  const stop = (): void => clearInterval(looking)
  const stuck = (): void => {
    stop()
    onStuck()
  }
  return stop
}

const connectionOf = ({ address, connectionId }: { address: string; connectionId: unknown }): string =>
  `${address} ${String(connectionId)}`
