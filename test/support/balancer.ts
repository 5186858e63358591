import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Balancer {
  readonly url: string
  /** Sends new connections to these nodes in turn. Open connections do not move. */
  to(upstreams: readonly string[]): void
  close(): Promise<void>
}

/** The load balancer in front of the API nodes of a cluster. Each connection goes to the next node. */
export const openBalancer = async (): Promise<Balancer> => {
  const open = new Set<Socket>()
  let upstreams: readonly string[] = []
  let turn = 0
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const { hostname, port } = new URL(upstreams[turn++ % upstreams.length] ?? 'http://127.0.0.1:1')
    const node = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    for (const [from, to] of [
      [client, node],
      [node, client],
    ] as const) {
      open.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        open.delete(from)
        if (!from.readableEnded) to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    to: (next) => (upstreams = next),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  }
}
