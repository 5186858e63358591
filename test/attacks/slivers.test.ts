import { connect, type Socket } from 'node:net'
import { deployed } from './calls.ts'
import { type Attacked, memorySuite } from './memory.ts'
import { residentMibOf } from './processes.ts'
import { publish } from '../support/build.ts'
import { until } from '../support/until.ts'

/** The bytes of a text in the chunked encoding, with one byte in each chunk. */
const slivers = (text: string): Buffer => {
  const chunk = Buffer.from('1\r\n.\r\n')
  const bytes = Buffer.alloc(chunk.length * text.length, chunk)
  for (let at = 0; at < text.length; at++) bytes[at * chunk.length + 3] = text.charCodeAt(at)
  return bytes
}

const END = Buffer.from('0\r\n\r\n')

/** Sends the head of a request with a chunked body, and the parts of its body. Resolves with the connection and its status. */
const sending = (
  url: string,
  headers: readonly string[],
  parts: readonly Buffer[],
): { socket: Socket; status: Promise<number> } => {
  const { hostname, port, pathname, host } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    'Transfer-Encoding: chunked',
    ...headers,
    '',
    '',
  ]
  socket.write(head.join('\r\n'))
  for (const part of parts) socket.write(part)
  const status = new Promise<number>((resolve) => {
    socket.once('data', (data) => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(String(data))?.[1] ?? 0)))
    socket.once('error', () => resolve(0)).once('close', () => resolve(0))
  })
  return { socket, status }
}

const counted = (statuses: readonly number[]): string =>
  [...Map.groupBy(statuses, (status) => status)]
    .map(([status, all]) => `${all.length} x ${status}`)
    .join(', ')

/** Bytes of a body that takes memory. */
const LARGE = 40 << 10

/** Webhooks of one organization that occupy all of its memory for their bodies, by sending no more. */
const occupied = (url: string): Socket[] =>
  Array.from({ length: 64 }, () =>
    sending(url, [], [slivers('x'.repeat(LARGE))]).socket.on('error', () => {}),
  )

/** Writes a frame of 8 MiB to the service byte by byte, more slowly than the service reads. */
const WRITES = `
  import { writeSync } from 'node:fs'
  export const attack = async () => {
    writeSync(3, Buffer.from([0, 0x7f, 0, 0]))
    const byte = Buffer.from(' ')
    for (let n = 0; ; n++) {
      const until = performance.now() + 0.02
      try { writeSync(3, byte) } catch {}
      while (performance.now() < until);
      if (n % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }
`

memorySuite('memory of the service: bytes one by one', [
  {
    id: 'B/08-bodies/slivers',
    attempt: 'publish three events of a mebibyte in chunks of one byte',
    severity: 'high',
    tried: async ({ api }) => {
      const body = JSON.stringify({ event_type: 'slivers', event_data: 'x'.repeat((1 << 20) - 64) })
      const parts = [slivers(body), END]
      const headers = [`Authorization: Bearer ${api.key}`]
      const sent = Array.from({ length: 3 }, () => sending(`${api.url}/v1/events`, headers, parts))
      const statuses = await Promise.all(sent.map(({ status }) => status))
      for (const { socket } of sent) socket.destroy()
      return counted(statuses)
    },
  },
  {
    id: 'B/08-bodies/slivers/waiting',
    attempt: 'forty webhooks without a credential, in chunks of one byte, that wait for the memory of others',
    severity: 'high',
    tried: async ({ urls }) => {
      const url = urls.get('/hook') ?? ''
      const holding = occupied(url)
      const body = slivers('x'.repeat(64 << 10))
      const sent = Array.from({ length: 40 }, () => sending(url, [], [body, END]))
      await until(() => sent.every(({ socket }) => socket.destroyed || socket.writableLength === 0))
      for (const socket of [...holding, ...sent.map(({ socket }) => socket)]) socket.destroy()
      return `${sent.length} waited`
    },
  },
  {
    id: 'A/12-floods/slivers',
    attempt: 'write a frame that never ends to the pipe, byte by byte',
    severity: 'high',
    tried: async (attacked) => grownBy(attacked, WRITES),
  },
])

/** Bytes that a child sends before the memory of the service is looked at. */
const WATCHED_MS = 3000
const MOST_GROWN_MIB = 32

const grownBy = async ({ target, api }: Attacked, code: string): Promise<string> => {
  const { pid = 0 } = target.server.process
  const project = await deployed(api, { 'main.ts': code })
  const before = residentMibOf(pid)
  await publish(api, 'svc:call', { fn: 'main/attack', project, args: [] })
  const since = Date.now()
  await until(() => Date.now() - since > WATCHED_MS)
  const grown = residentMibOf(pid) - before
  if (grown > MOST_GROWN_MIB) throw new Error(`went through: the service grew by ${grown} MiB`)
  return `the service grew by ${grown} MiB`
}
