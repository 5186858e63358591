import { connect, type Socket } from 'node:net'

/** Sorted milliseconds to percentiles. */
export const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN

export interface LoadResult {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly failed: number
}

export interface Load {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly connections: number
  readonly requests: number
}

/**
 * Sends one request after another on each connection, over bare sockets: on two cores, a heavier client would distort
 * the measurement.
 */
export const load = async ({ connections, requests, ...request }: Load): Promise<LoadResult> => {
  const { connected, bytes } = requestTo(request)
  const took: number[] = []
  let left = requests
  let failed = 0
  const began = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connected()
      try {
        while (left-- > 0) {
          const sent = performance.now()
          const status = await roundTrip(socket, bytes)
          took.push(performance.now() - sent)
          if (status < 200 || status > 299) failed++
        }
      } finally {
        socket.destroy()
      }
    }),
  )
  const seconds = (performance.now() - began) / 1000
  took.sort((a, b) => a - b)
  return { perSecond: requests / seconds, p50: percentile(took, 0.5), p99: percentile(took, 0.99), failed }
}

/** The bytes of a request, and what opens a connection for it. */
export const requestTo = ({
  url,
  method = 'POST',
  headers = {},
  body = '',
}: Omit<Load, 'connections' | 'requests'>): { connected: () => Socket; bytes: Buffer } => {
  const { hostname, port, pathname, search } = new URL(url)
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `Host: ${hostname}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
  return { bytes, connected: () => connect(Number(port), hostname).setNoDelay() }
}

/** Sends a request and resolves with the status once the reply's Content-Length has arrived. */
export const roundTrip = (socket: Socket, request: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    let text = ''
    const onClose = () => reject(new Error('The server closed the connection'))
    const done = () => {
      socket.off('data', onData)
      socket.off('error', reject)
      socket.off('close', onClose)
    }
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length < end + 4 + length) return
      done()
      resolve(Number(text.slice(9, 12)))
    }
    socket.on('data', onData)
    socket.once('error', reject)
    socket.once('close', onClose)
    socket.write(request)
  })
