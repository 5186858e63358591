import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Line, type Fault } from './faultProxyLine.ts'
import { freePort } from './freePort.ts'
import { resetSocket } from './resetSocket.ts'

export interface FaultProxy {
  readonly port: number
  /** The URL with the target replaced by the proxy. One of its hosts must be the target. */
  url(original: string): string
  /** Ends all faults. Data held by a blackhole arrives in order, like after a network partition. */
  heal(): Promise<void>
  /** Simulates an engine that is down: open connections are reset, and new ones are refused until `heal`. */
  refuse(): void
  /** Simulates a network partition: old and new connections stay open, and nothing passes, not even their end. */
  blackhole(): void
  /** Resets open connections, and new ones at once. */
  reset(): void
  /** Delays all data in each direction. */
  delay(ms: number): void
  /** Ends the direction to the client of open connections. Data to the engine still passes; new connections are normal. */
  halfClose(): void
  /** Closes everything. Resolves when no connection is open. */
  close(): Promise<void>
}

interface Link {
  readonly client: Socket
  readonly engine: Socket
  move(): void
}

/**
 * A TCP proxy on 127.0.0.1 in front of an engine that fails on command. A fault lasts until the next fault
 * or until `heal`, and affects open connections at once. A target that is down appears as a reset.
 */
export const openFaultProxy = async (target: { host: string; port: number }): Promise<FaultProxy> => {
  const links = new Set<Link>()
  const fault: Fault = { held: false, delayMs: 0 }
  let resetting = false

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (resetting) resetSocket(client.on('error', () => {}))
    else links.add(openLink(client, target, fault, (link) => links.delete(link)))
  })
  const listen = async (port: number): Promise<void> => {
    server.listen({ host: '127.0.0.1', port })
    await once(server, 'listening')
  }
  const resetAll = (): void => {
    for (const { client, engine } of links) {
      resetSocket(client)
      resetSocket(engine)
    }
  }
  const change = ({ held = false, delayMs = 0, reset = false }): void => {
    Object.assign(fault, { held, delayMs })
    resetting = reset
    if (reset) resetAll()
    for (const link of links) link.move()
  }

  const port = await freePort() // no other server gets it while the proxy refuses
  await listen(port)
  return {
    port,
    url: (original) => throughPort(original, target, port),
    heal: async () => {
      change({})
      if (!server.listening) await listen(port)
    },
    refuse: () => {
      server.close()
      change({ reset: true })
    },
    blackhole: () => change({ held: true }),
    reset: () => change({ reset: true }),
    delay: (delayMs) => change({ delayMs }),
    halfClose: () => {
      change({})
      for (const { client } of links) client.end()
    },
    close: async () => {
      const closed = server.listening ? once(server.close(), 'close') : undefined
      for (const { client, engine } of links) {
        client.destroy()
        engine.destroy()
      }
      await closed
    },
  }
}

const openLink = (
  client: Socket,
  target: { host: string; port: number },
  fault: Fault,
  onClosed: (link: Link) => void,
): Link => {
  const engine = connect({ ...target, allowHalfOpen: true, noDelay: true })
  const lines = [new Line(client, engine, fault), new Line(engine, client, fault)]
  let broken = false
  const link: Link = {
    client,
    engine,
    move: () => {
      if (broken && !fault.held) {
        resetSocket(client)
        resetSocket(engine)
      } else for (const line of lines) line.move()
    },
  }
  for (const socket of [client, engine]) {
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', (hadError) => {
      broken ||= hadError
      link.move()
      if (client.closed && engine.closed) onClosed(link)
    })
  }
  return link
}

const throughPort = (original: string, target: { host: string; port: number }, port: number): string => {
  const [, before = '', hosts = '', after = ''] =
    /^([^/]*:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/s.exec(original) ?? []
  const replaced = hosts
    .split(',')
    .map((host) =>
      [target.host, `${target.host}:${target.port}`].includes(host) ? `127.0.0.1:${port}` : host,
    )
    .join(',')
  if (replaced === hosts) throw new Error(`Expected a URL with the host ${target.host}:${target.port}`)
  return before + replaced + after
}
