import {
  CODE,
  type DnsQuery,
  type DnsRecord,
  encodedName,
  encodedText,
  type Question,
  replyTo,
  TYPE,
} from './message.ts'

/** The values of a challenge change with each order. */
const TTL_SECONDS = 1
const DAY_SECONDS = 86_400

export interface Zone {
  /** The delegated zone, such as `acme.svc.example.com`. */
  readonly origin: string
  /** The host to which the zone is delegated. */
  readonly server: string
  /** Returns the values of the TXT record of a label directly below the origin; null if there is no such name. */
  readonly valuesOf: (label: string) => readonly string[] | null
}

/** Answers a query about the zone: the TXT records of challenges, SOA and NS. Every other name is refused. */
export const answer = (query: DnsQuery, zone: Zone): Buffer => {
  const { name } = query.question
  if (name !== zone.origin && !name.endsWith(`.${zone.origin}`))
    return replyTo(query, { code: CODE.REFUSED, records: [], authority: [] })
  const records = recordsOf(query.question, zone)
  if (records === null)
    return replyTo(query, { code: CODE.NAME_ERROR, records: [], authority: [soaOf(zone)] })
  const authority = records.length > 0 ? [] : [soaOf(zone)]
  return replyTo(query, { code: CODE.NO_ERROR, records, authority })
}

/** Null if there is no such name. */
const recordsOf = ({ name, type }: Question, zone: Zone): readonly DnsRecord[] | null => {
  if (name === zone.origin) {
    if (type === TYPE.SOA) return [{ ...soaOf(zone), name: null }]
    if (type === TYPE.NS)
      return [{ name: null, type: TYPE.NS, ttlSeconds: DAY_SECONDS, data: encodedName(zone.server) }]
    return []
  }
  const label = name.slice(0, -(zone.origin.length + 1))
  const values = zone.valuesOf(label)
  if (values === null) return null
  if (type !== TYPE.TXT) return []
  return values.map((value) => ({
    name: null,
    type: TYPE.TXT,
    ttlSeconds: TTL_SECONDS,
    data: encodedText(value),
  }))
}

/** Its last field limits the time for which resolvers remember that there is no record. */
const soaOf = ({ origin, server }: Zone): DnsRecord => {
  const numbers = Buffer.alloc(20)
  for (const [i, value] of [1, DAY_SECONDS, DAY_SECONDS, DAY_SECONDS, TTL_SECONDS].entries())
    numbers.writeUInt32BE(value, i * 4)
  const data = Buffer.concat([encodedName(server), encodedName(`hostmaster.${origin}`), numbers])
  return { name: origin, type: TYPE.SOA, ttlSeconds: TTL_SECONDS, data }
}
