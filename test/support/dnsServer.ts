import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'

const [TYPE_A, TYPE_CNAME, TYPE_TXT] = [1, 5, 16]
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

/** CNAME records that the resolver below follows. */
const HOPS = 8

/**
 * A resolver that follows CNAME records, as certificate authorities use. It asks `authority` about every name, but
 * `delegate` about the names of a delegated zone.
 */
export const openRecursor = async (
  authority: string,
  { zone, delegate }: { readonly zone: string; readonly delegate: () => string },
) => {
  const resolverOf = (server: string): Resolver => {
    const resolver = new Resolver({ timeout: 1000, tries: 2 })
    resolver.setServers([server])
    return resolver
  }
  /** No records are an answer; a failure is not. */
  const found = <T>(answer: Promise<T[]>): Promise<T[]> =>
    answer.catch((error: unknown) => {
      if (['ENODATA', 'ENOTFOUND'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
      throw error
    })
  const chase = async ({ name, type }: { name: string; type: number }): Promise<Reply> => {
    const records: Buffer[] = []
    let at = name
    for (let hop = 0; hop < HOPS; hop++) {
      const isDelegated = at.endsWith(`.${zone}`)
      const [target] = isDelegated ? [] : await found(resolverOf(authority).resolveCname(at))
      if (target === undefined) break
      records.push(cnameRecord(target, at))
      if (type === TYPE_CNAME) break
      at = target.toLowerCase()
    }
    if (type === TYPE_TXT) {
      const server = at.endsWith(`.${zone}`) ? delegate() : authority
      for (const parts of await found(resolverOf(server).resolveTxt(at)))
        records.push(txtRecord(parts.join(''), at))
    }
    return { code: NO_ERROR, records }
  }
  return openResponder((query) => chase(query).catch(() => ({ code: SERVFAIL, records: [] })))
}

interface Reply {
  readonly code: number
  readonly records: readonly Buffer[]
}

/** RFC 1035: a header of 12 bytes, the question, the answer. `null` is no reply. */
const openResponder = async (
  replyTo: (query: { name: string; type: number }) => Reply | null | Promise<Reply | null>,
) => {
  const socket = createSocket('udp4')
  let isClosed = false
  socket.on('message', (question, { port, address }) => {
    const { name, end } = nameAt(question, 12)
    void answer({ name, type: question.readUInt16BE(end) }, question, end, { port, address })
  })
  const answer = async (
    query: { name: string; type: number },
    question: Buffer,
    end: number,
    { port, address }: { port: number; address: string },
  ): Promise<void> => {
    const reply = await replyTo(query)
    if (!reply || isClosed) return
    const header = Buffer.alloc(12)
    question.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | reply.code, 2) // an answer, recursion desired and available
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(reply.records.length, 6)
    socket.send(Buffer.concat([header, question.subarray(12, end + 4), ...reply.records]), port, address)
  }
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        isClosed = true
        socket.close(() => resolve())
      }),
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

const nameBytes = (name: string): Buffer => {
  const labels = name
    .split('.')
    .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1'))
  return Buffer.concat([...labels, Buffer.from([0])])
}

const cnameRecord = (target: string, owner?: string): Buffer => {
  const ttlSeconds = 3600 // a resolver that caches would miss changes
  return record(TYPE_CNAME, ttlSeconds, nameBytes(target), owner)
}

const aRecord = (ip: string): Buffer => record(TYPE_A, 0, Buffer.from(ip.split('.').map(Number)))

const txtRecord = (text: string, owner: string): Buffer =>
  record(TYPE_TXT, 0, Buffer.from(`${String.fromCharCode(text.length)}${text}`, 'latin1'), owner)

/** A record of `owner`; by default of the name in the question. */
const record = (type: number, ttlSeconds: number, data: Buffer, owner?: string): Buffer => {
  const name = owner === undefined ? Buffer.from([0xc0, 0x0c]) : nameBytes(owner)
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0)
  head.writeUInt16BE(1, 2)
  head.writeUInt32BE(ttlSeconds, 4)
  head.writeUInt16BE(data.length, 8)
  return Buffer.concat([name, head, data])
}
