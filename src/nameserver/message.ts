/** Types of DNS records (RFC 1035; OPT: RFC 6891). */
export const TYPE = { NS: 2, SOA: 6, TXT: 16, OPT: 41 } as const

/** Codes of a reply. */
export const CODE = { NO_ERROR: 0, FORMAT_ERROR: 1, NOT_IMPLEMENTED: 4, NAME_ERROR: 3, REFUSED: 5 } as const
type Code = (typeof CODE)[keyof typeof CODE]

const HEADER_BYTES = 12
const CLASS_IN = 1
const MAX_NAME_BYTES = 255
const MAX_LABEL_BYTES = 63
/** Payload of a datagram that passes every network (DNS flag day 2020). */
const UDP_BYTES = 1232

export interface Question {
  /** Lower case, without a trailing dot. */
  readonly name: string
  readonly type: number
}

/** A query, as far as this server answers it. */
export interface DnsQuery {
  readonly question: Question
  /** The question as it was sent: resolvers check its upper and lower case. */
  readonly raw: Buffer
  readonly id: number
  readonly recursionDesired: boolean
  readonly hasEdns: boolean
}

export interface DnsRecord {
  /** Null: the name of the question. */
  readonly name: string | null
  readonly type: number
  readonly ttlSeconds: number
  readonly data: Buffer
}

interface Answer {
  readonly code: Code
  readonly records: readonly DnsRecord[]
  readonly authority: readonly DnsRecord[]
}

/** Reads a query of one question. Returns the code of the refusal for another one, and null for what deserves no reply. */
export const parseQuery = (
  bytes: Buffer,
): DnsQuery | { readonly id: number; readonly refused: Code } | null => {
  if (bytes.length < HEADER_BYTES) return null
  const id = bytes.readUInt16BE(0)
  const flags = bytes.readUInt16BE(2)
  if ((flags & 0x8000) !== 0) return null // a reply: an answer to it could begin a loop
  if ((flags & 0x7800) !== 0) return { id, refused: CODE.NOT_IMPLEMENTED }
  if (bytes.readUInt16BE(4) !== 1) return { id, refused: CODE.FORMAT_ERROR }
  const read = nameAt(bytes, HEADER_BYTES)
  if (!read || read.end + 4 > bytes.length) return { id, refused: CODE.FORMAT_ERROR }
  if (bytes.readUInt16BE(read.end + 2) !== CLASS_IN) return { id, refused: CODE.REFUSED }
  const end = read.end + 4
  return {
    id,
    question: { name: read.name, type: bytes.readUInt16BE(read.end) },
    raw: Buffer.from(bytes.subarray(HEADER_BYTES, end)),
    recursionDesired: (flags & 0x0100) !== 0,
    // An OPT record has the root as its name, and resolvers send it as the only one after the question.
    hasEdns: bytes.length >= end + 3 && bytes[end] === 0 && bytes.readUInt16BE(end + 1) === TYPE.OPT,
  }
}

const nameAt = (bytes: Buffer, start: number): { name: string; end: number } | null => {
  const labels: string[] = []
  let at = start
  for (;;) {
    const length = bytes[at]
    if (length === undefined || length > MAX_LABEL_BYTES) return null // no pointers: a question comes first
    at += 1
    if (length === 0) return { name: labels.join('.').toLowerCase(), end: at }
    if (at + length > bytes.length || at + length - start > MAX_NAME_BYTES) return null
    labels.push(bytes.toString('latin1', at, at + length))
    at += length
  }
}

/** Returns the authoritative reply to a query. */
export const replyTo = (query: DnsQuery, { code, records, authority }: Answer): Buffer => {
  const flags = 0x8400 | (query.recursionDesired ? 0x0100 : 0) | code
  const additional = query.hasEdns ? [opt] : []
  return Buffer.concat([
    header(query.id, flags, [1, records.length, authority.length, additional.length]),
    query.raw,
    ...[...records, ...authority].map(encoded),
    ...additional,
  ])
}

/** Returns the reply without content to a query that cannot be answered. */
export const refusalTo = (id: number, code: Code): Buffer => header(id, 0x8000 | code, [0, 0, 0, 0])

const header = (id: number, flags: number, counts: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(HEADER_BYTES)
  for (const [i, value] of [id, flags, ...counts].entries()) bytes.writeUInt16BE(value, i * 2)
  return bytes
}

const opt = Buffer.from([0, 0, TYPE.OPT, UDP_BYTES >> 8, UDP_BYTES & 0xff, 0, 0, 0, 0, 0, 0])

const encoded = ({ name, type, ttlSeconds, data }: DnsRecord): Buffer => {
  const owner = name === null ? Buffer.from([0xc0, HEADER_BYTES]) : encodedName(name)
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0)
  head.writeUInt16BE(CLASS_IN, 2)
  head.writeUInt32BE(ttlSeconds, 4)
  head.writeUInt16BE(data.length, 8)
  return Buffer.concat([owner, head, data])
}

export const encodedName = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    Buffer.from([0]),
  ])

/** The data of a TXT record. Texts have at most 255 bytes. */
export const encodedText = (text: string): Buffer =>
  Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)])
