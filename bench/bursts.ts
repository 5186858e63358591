import { setTimeout as delay } from 'node:timers/promises'
import type { Socket } from 'node:net'
import type { Figure } from './figure.ts'
import { percentile, requestTo, roundTrip } from './load.ts'
import { BenchServer } from './server.ts'
import { HOOK } from './webhook.ts'

const BURSTS = 3
const CONNECTIONS = 512
const BURST_MS = 10_000

/** Three bursts of clients that all connect at once and hang up in the middle of a call: how alike they are served. */
export const bursts = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    const { '/hook': url = '' } = await server.deploy(HOOK)
    await burst(url, 8, 2000)
    const counts: number[][] = []
    for (let n = 0; n < BURSTS; n++) counts.push(await burst(url, CONNECTIONS, BURST_MS))
    const least = Math.min(...counts.map(([fewest = 0]) => fewest))
    const ratios = counts.map((sorted) => (sorted[0] ?? 0) / (sorted.at(-1) ?? 0))
    return [
      {
        what: `slowest of ${CONNECTIONS} connections / fastest`,
        value: Math.min(...ratios),
        unit: '',
        atLeast: 0.5,
      },
      { what: '  replies of the slowest', value: least, unit: `in ${BURST_MS / 1000} s` },
      {
        what: '  replies of the median',
        value: percentile(counts.at(-1) ?? [], 0.5),
        unit: `in ${BURST_MS / 1000} s`,
      },
    ]
  } finally {
    await server.stop()
  }
}

/** Returns the number of replies that each connection received, sorted. */
const burst = async (url: string, connections: number, milliseconds: number): Promise<number[]> => {
  const { connected, bytes } = requestTo({ url, body: '{}' })
  const counts = Array.from({ length: connections }, () => 0)
  let isOver = false
  const sockets: Socket[] = []
  const clients = counts.map(async (_, n) => {
    const socket = connected()
    sockets.push(socket)
    try {
      while (!isOver) {
        const status = await roundTrip(socket, bytes)
        if (status !== 200) throw new Error(`Expected 200, got ${status}`)
        counts[n] = (counts[n] ?? 0) + 1
      }
    } catch (error) {
      if (!isOver) throw error
    }
  })
  await delay(milliseconds)
  isOver = true
  for (const socket of sockets) socket.destroy()
  await Promise.all(clients)
  return counts.sort((a, b) => a - b)
}
