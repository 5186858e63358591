import { createServer } from 'node:net'

/** Below the ports that Linux gives to connections and to servers which ask for any port: none of them takes such a port meanwhile. */
const FIRST = 20_000
const COUNT = 7000

/** Differs between processes that run at the same time. */
let next = Math.floor(Math.random() * COUNT)

/** A port at which nothing listens now. It remains free until its server begins, and while the server restarts. */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = FIRST + (next++ % COUNT)
    if (await isFree(port)) return port
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', ({ code }: NodeJS.ErrnoException) =>
      code === 'EADDRINUSE'
        ? resolve(false)
        : reject(new Error(`Expected to listen at ${port}, got ${code}`)),
    )
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
