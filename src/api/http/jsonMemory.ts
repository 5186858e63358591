import type { IncomingMessage } from 'node:http'
import type { GiveBack } from '../../loops/byteBudget.ts'
import { reads } from '../../loops/slices.ts'
import type { LargeBody } from './body.ts'
import type { ApiMemory } from './memory.ts'

/** Bodies up to this size take no memory while they arrive: the connections are limited too. */
const SMALL_BYTES = 64 << 10
/** The same for values. A body of 64 KiB can be one of 1.4 MiB. */
const SMALL_VALUE_BYTES = 256 << 10

/** Memory of one list or object, of one member of an object and of one element of a list, when JSON is parsed. */
const CONTAINER_BYTES = 64
const MEMBER_BYTES = 48
const ELEMENT_BYTES = 8

/** The memory that a JSON body may need when it is parsed. */
const parsedBytes = (json: Buffer): number => {
  let bytes = 2 * json.length
  for (const byte of json) {
    if (byte === 0x5b || byte === 0x7b) bytes += CONTAINER_BYTES
    else if (byte === 0x3a) bytes += MEMBER_BYTES
    else if (byte === 0x2c) bytes += ELEMENT_BYTES
  }
  return bytes
}

/**
 * Reads and parses a JSON body with memory of its owner: for the bytes of a large one from the time when it has more than a
 * small one, because its client may send no more, and for a large value until `done` is called. The two are separate, so that
 * no body that arrives slowly keeps others from being parsed. The parse of a large value has a turn of the event loop of its own.
 */
export const parseInMemory = async <Value>(
  memory: ApiMemory,
  owner: string,
  {
    limit,
    read,
    parse,
  }: {
    limit: number | null
    read: (large: LargeBody | undefined) => Promise<Buffer>
    parse: (json: Buffer) => Value
  },
): Promise<{ readonly value: Value; readonly done?: GiveBack }> => {
  let isRead = false
  let doneReading: GiveBack | undefined
  const admitOf = (bytes: number) => async (): Promise<void> => {
    const giveBack = await memory.bodies.take(owner, bytes)
    if (isRead) giveBack() // the client has left meanwhile
    else doneReading = giveBack
  }
  try {
    const json = await read(limit === null ? undefined : { over: SMALL_BYTES, admit: admitOf(limit) })
    const bytes = parsedBytes(json)
    if (bytes <= SMALL_VALUE_BYTES) return { value: parse(json) }
    const done = await memory.values.take(owner, bytes)
    try {
      await reads.take()
      const value = parse(json)
      await reads.take() // what follows is as long
      return { value, done }
    } catch (error) {
      done()
      throw error
    }
  } finally {
    isRead = true
    doneReading?.()
  }
}

/** The bytes that a large body may have; null for a small one. */
export const largeSizeOf = ({ headers }: IncomingMessage, limit: number): number | null => {
  if (headers['transfer-encoding'] !== undefined) return limit
  const announced = Number(headers['content-length'] ?? 0)
  return announced > SMALL_BYTES && announced <= limit ? announced : null
}
