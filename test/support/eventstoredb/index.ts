import { freePort } from '../freePort.ts'
import { Log } from './log.ts'
import { type Misbehave, Misbehaviour } from './misbehaviour.ts'
import { run, type Security } from './server.ts'

export interface StandIn {
  /** `esdb://127.0.0.1:PORT?tls=false`, also of a node with TLS; the port stays the same over restarts. */
  readonly url: string
  readonly port: number
  readonly misbehave: Misbehave
  /** Ends the node like kill -9: connections are reset and data in transit is lost. Stored data is kept for `restart`. */
  stop(): Promise<void>
  restart(): Promise<void>
}

/**
 * A server in this process that behaves towards the client like EventStoreDB 24.6, with its data in memory. It is
 * a stand-in for tests without a real server. Port 0 (default) is any free port. Nodes that share
 * a log are replicas; `misbehave.follow` makes all but one of them followers.
 */
export const startStandIn = async ({
  port: asked = 0,
  log = new Log(),
  security,
}: { port?: number; log?: Log; security?: Security } = {}): Promise<StandIn> => {
  const misbehaviour = new Misbehaviour()
  const port = asked || (await freePort()) // no other server gets it while the node is stopped
  let running = await run(log, misbehaviour, port, security)
  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    port,
    misbehave: misbehaviour,
    stop: () => running.kill(),
    restart: async () => {
      running = await run(log, misbehaviour, port, security)
    },
  }
}
