import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Effect } from './records.ts'

export interface Ledger {
  readonly url: string
  /** The target that the service must allow for functions. */
  readonly allow: string
  readonly effects: readonly Effect[]
  close(): Promise<void>
}

/** An HTTP server to which user code reports that it began: a side effect that no fault of the service can undo. */
export const openLedger = async (): Promise<Ledger> => {
  const effects: Effect[] = []
  const server = createServer((request, response) => {
    void text(request)
      .then((body) => {
        effects.push(JSON.parse(body) as Effect)
        response.writeHead(204, { connection: 'close' }).end() // a kept connection may end just when it is used again
      })
      .catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    allow: `127.0.0.1:${port}`,
    effects,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
