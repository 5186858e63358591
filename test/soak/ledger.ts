import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { CallsOfRun, Effect } from './records.ts'

export interface Ledger {
  readonly url: string
  /** The target that the service must allow for functions. */
  readonly allow: string
  readonly effects: readonly Effect[]
  readonly calls: readonly CallsOfRun[]
  close(): Promise<void>
}

/**
 * An HTTP server to which user code reports that it began (`/effects`), and which of its calls succeeded (`/calls`). No
 * fault of the service can undo such a side effect.
 */
export const openLedger = async (): Promise<Ledger> => {
  const effects: Effect[] = []
  const calls: CallsOfRun[] = []
  const server = createServer((request, response) => {
    void text(request)
      .then((body) => {
        if (request.url === '/calls') calls.push(JSON.parse(body) as CallsOfRun)
        else effects.push(JSON.parse(body) as Effect)
        response.writeHead(204, { connection: 'close' }).end() // a kept connection may end just when it is used again
      })
      .catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    allow: `127.0.0.1:${port}`,
    effects,
    calls,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
