import { createSocket } from 'node:dgram'
import { once } from 'node:events'

const [TYPE_A, TYPE_CNAME] = [1, 5]
const [NO_ERROR, SERVFAIL, NXDOMAIN] = [0, 2, 3]

/** A name server for tests. It knows CNAME records, and can be silent or broken. */
export interface DnsServer {
  /** `127.0.0.1:port`. */
  readonly address: string
  /** Targets by name, both lower-case and without a trailing dot. */
  readonly records: Map<string, string>
  /** Its reaction to queries. */
  mood: 'answers' | 'silent' | 'fails'
  /** The queried names. */
  readonly asked: string[]
  stop(): Promise<void>
}

export const startDns = async (): Promise<DnsServer> => {
  const [records, asked] = [new Map<string, string>(), [] as string[]]
  const opened = await openResponder(({ name, type }) => {
    asked.push(name)
    if (server.mood === 'silent') return null
    const target = type === TYPE_CNAME && server.mood === 'answers' ? records.get(name) : undefined
    const code = server.mood === 'fails' ? SERVFAIL : records.has(name) ? NO_ERROR : NXDOMAIN
    return { code, records: target === undefined ? [] : [cnameRecord(target)] }
  })
  const server: DnsServer = { ...opened, records, mood: 'answers', asked }
  return server
}

/** A name server that answers A queries with the next of the addresses of a name. */
export const openAddresses = async (lists: Readonly<Record<string, readonly (readonly string[])[]>>) => {
  /** A queries by name. */
  const asked = new Map<string, number>()
  const { address, stop } = await openResponder(({ name, type }) => {
    const known = lists[name]
    const code = known ? NO_ERROR : NXDOMAIN
    if (type !== TYPE_A) return { code, records: [] }
    const count = asked.get(name) ?? 0
    asked.set(name, count + 1)
    return { code, records: (known?.[Math.min(count, known.length - 1)] ?? []).map(aRecord) }
  })
  return { address, asked, stop }
}

interface Reply {
  readonly code: number
  readonly records: readonly Buffer[]
}

/** RFC 1035: a header of 12 bytes, the question, the answer. `null` is no reply. */
const openResponder = async (replyTo: (query: { name: string; type: number }) => Reply | null) => {
  const socket = createSocket('udp4')
  socket.on('message', (question, { port, address }) => {
    const { name, end } = nameAt(question, 12)
    const reply = replyTo({ name, type: question.readUInt16BE(end) })
    if (!reply) return
    const header = Buffer.alloc(12)
    question.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | reply.code, 2) // an answer, recursion desired and available
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(reply.records.length, 6)
    socket.send(Buffer.concat([header, question.subarray(12, end + 4), ...reply.records]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    stop: () => new Promise<void>((resolve) => socket.close(() => resolve())),
  }
}

const nameAt = (bytes: Buffer, start: number): { name: string; end: number } => {
  const labels: string[] = []
  let at = start
  for (let length = bytes[at] ?? 0; length > 0; length = bytes[at] ?? 0) {
    labels.push(bytes.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

const cnameRecord = (target: string): Buffer => {
  const labels = target
    .split('.')
    .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1'))
  const ttlSeconds = 3600 // a resolver that caches would miss changes
  return record(TYPE_CNAME, ttlSeconds, Buffer.concat([...labels, Buffer.from([0])]))
}

const aRecord = (ip: string): Buffer => record(TYPE_A, 0, Buffer.from(ip.split('.').map(Number)))

/** A record of the name in the question. */
const record = (type: number, ttlSeconds: number, data: Buffer): Buffer => {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0) // the name of the question
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(ttlSeconds, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}
