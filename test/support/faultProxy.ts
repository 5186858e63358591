import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Line, type Weather } from './faultProxyLine.ts'

export interface FaultProxy {
  readonly port: number
  /** The same URL through the proxy. Of several hosts only the target is replaced; one of them must be it. */
  url(original: string): string
  /** No faults any more. What the blackhole held arrives now, in order, as after a healed partition. */
  heal(): Promise<void>
  /** The engine is down: connections under way are reset; new ones are refused until `heal`, whatever else follows. */
  refuse(): void
  /** The network swallows all: connections, new ones too, stay open and nothing passes, not even their end. */
  blackhole(): void
  /** Connections under way are reset, new ones as soon as they are made. */
  reset(): void
  /** Everything takes this much longer, in each direction. */
  delay(ms: number): void
  /** Ends the answering side of the connections under way; what clients send still passes. New ones are whole. */
  halfClose(): void
  /** Ends all; resolves when nothing is left open. */
  close(): Promise<void>
}

interface Link {
  readonly client: Socket
  readonly engine: Socket
  move(): void
}

/**
 * A TCP proxy on 127.0.0.1 that stands before an engine and fails on command. A fault lasts until the next
 * or until `heal`, and strikes the connections under way at once. A target that is down shows as a reset.
 */
export const openFaultProxy = async (target: { host: string; port: number }): Promise<FaultProxy> => {
  const links = new Set<Link>()
  const weather: Weather = { held: false, delayMs: 0 }
  let resetting = false

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (resetting) client.on('error', () => {}).resetAndDestroy()
    else links.add(openLink(client, target, weather, (link) => links.delete(link)))
  })
  const listen = async (port: number): Promise<void> => {
    server.listen({ host: '127.0.0.1', port })
    await once(server, 'listening')
  }
  const resetAll = (): void => {
    for (const { client, engine } of links) {
      client.resetAndDestroy()
      engine.resetAndDestroy()
    }
  }
  const change = ({ held = false, delayMs = 0, reset = false }): void => {
    Object.assign(weather, { held, delayMs })
    resetting = reset
    if (reset) resetAll()
    for (const link of links) link.move()
  }

  await listen(0)
  const { port } = server.address() as AddressInfo
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
  weather: Weather,
  onClosed: (link: Link) => void,
): Link => {
  const engine = connect({ ...target, allowHalfOpen: true, noDelay: true })
  const lines = [new Line(client, engine, weather), new Line(engine, client, weather)]
  let broken = false
  const link: Link = {
    client,
    engine,
    move: () => {
      if (broken && !weather.held) {
        client.resetAndDestroy()
        engine.resetAndDestroy()
      } else for (const line of lines) line.move()
    },
  }
  for (const socket of [client, engine]) {
    socket.on('error', () => {}) // told by 'close'
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
