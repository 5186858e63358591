import { type ApiServer, DRAIN_MS } from '../api/server.ts'
import type { WaitingCalls } from '../loops/waitingCalls.ts'
import { atMost } from '../loops/deadline.ts'
import type { Worker } from '../worker/worker.ts'

/** Callers that wait for a run have as long as the run has to end, milliseconds. */
const CALLS_MS = 20_000
/** Time in which the callers read the ends of the last runs, milliseconds. */
const READING_MS = 1000

/**
 * Resolves when all requests have ended, before what they use is closed. They have 5 seconds, in which the worker of this process still
 * works. Then it takes nothing more, and the callers that wait for runs have the rest of 20 seconds. If this process is alone,
 * they end with its worker, because nobody executes the runs that it returns.
 */
export const drain = async (
  servers: readonly ApiServer[],
  { calls, worker, isAlone }: { calls: WaitingCalls; worker: Pick<Worker, 'drain'> | null; isAlone: boolean },
): Promise<void> => {
  const closed = Promise.all(servers.map((server) => server.close(calls)))
  if (await atMost(DRAIN_MS, closed)) return
  const end = (ms: number) => setTimeout(() => calls.end(), ms)
  const timers = [end(CALLS_MS - DRAIN_MS)]
  const drained = worker?.drain()
  if (isAlone) void drained?.then(() => timers.push(end(READING_MS)))
  await closed
  for (const timer of timers) clearTimeout(timer)
}
