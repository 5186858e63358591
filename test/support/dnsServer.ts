import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

const TYPE_CNAME = 5
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
  const socket = createSocket('udp4')
  const server: DnsServer = {
    get address() {
      return `127.0.0.1:${socket.address().port}`
    },
    records: new Map(),
    mood: 'answers',
    asked: [],
    stop: () => new Promise((resolve) => socket.close(() => resolve())),
  }
  socket.on('message', (question, { port, address }) => {
    const reply = replyTo(question, server)
    if (reply) socket.send(reply, port, address)
  })
  await listening(socket)
  return server
}

const listening = async (socket: Socket): Promise<void> => {
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
}

/** RFC 1035: a header of 12 bytes, the question, the answer. */
const replyTo = (question: Buffer, { records, mood, asked }: DnsServer): Buffer | null => {
  const { name, end } = nameAt(question, 12)
  asked.push(name)
  if (mood === 'silent') return null
  const isCname = question.readUInt16BE(end) === TYPE_CNAME
  const target = isCname && mood === 'answers' ? records.get(name) : undefined
  const code = mood === 'fails' ? SERVFAIL : records.has(name) ? NO_ERROR : NXDOMAIN
  const header = Buffer.alloc(12)
  question.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | code, 2) // an answer, recursion desired and available
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(target === undefined ? 0 : 1, 6)
  return Buffer.concat([
    header,
    question.subarray(12, end + 4),
    ...(target === undefined ? [] : [cnameRecord(target)]),
  ])
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
  const data = Buffer.concat([
    ...target
      .split('.')
      .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1')),
    Buffer.from([0]),
  ])
  const record = Buffer.alloc(12)
  record.writeUInt16BE(0xc00c, 0) // the name of the question
  record.writeUInt16BE(TYPE_CNAME, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt32BE(3600, 6) // a resolver that caches would miss changes
  record.writeUInt16BE(data.length, 10)
  return Buffer.concat([record, data])
}
