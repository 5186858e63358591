import { Log } from './log.ts'
import { type Misbehave, Misbehaviour } from './misbehaviour.ts'
import { run } from './server.ts'

export interface StandIn {
  /** `esdb://127.0.0.1:PORT?tls=false`; the port stays the same over restarts. */
  readonly url: string
  readonly port: number
  readonly misbehave: Misbehave
  /** As kill -9: connections are reset, what was on its way is lost. The data stays for `restart`. */
  stop(): Promise<void>
  restart(): Promise<void>
}

/**
 * A server in this process that answers the EventStoreDB client as EventStoreDB 24.6 did, with its data in memory:
 * a stand-in for tests where there is no real one. Port 0 (default) is any free one. Nodes that are given
 * one log are replicas; `misbehave.follow` makes all but one of them followers.
 */
export const startStandIn = async ({ port: asked = 0, log = new Log() } = {}): Promise<StandIn> => {
  const misbehaviour = new Misbehaviour()
  let running = await run(log, misbehaviour, asked)
  const { port } = running
  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    port,
    misbehave: misbehaviour,
    stop: () => running.kill(),
    restart: async () => {
      running = await run(log, misbehaviour, port)
    },
  }
}
