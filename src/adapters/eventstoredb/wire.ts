import type { Position, RecordedEvent } from '@eventstore/db-client'
import { AppError } from '../../errors.ts'
import { type Cursor, type Metadata, type NewEvent, type Recorded, START } from '../../events/event.ts'
import type { DomainEvent } from '../../events/index.ts'
import { upcast } from '../../events/upcast.ts'

/** Sixteen hexadecimal digits of the commit position and sixteen of the prepare position. Resuming needs both. */
export const cursorOf = ({ commit, prepare }: Position): Cursor => hex(commit) + hex(prepare)

const hex = (value: bigint): string => value.toString(16).padStart(16, '0')

export const isCursor = (text: string): boolean => /^[0-9a-f]{32}$/.test(text)

export const positionOf = (cursor: Cursor): Position | 'start' => {
  if (cursor === START) return 'start'
  if (!isCursor(cursor)) throw new AppError('bad_request', `Expected a cursor of this log, got "${cursor}"`)
  return { commit: BigInt(`0x${cursor.slice(0, 16)}`), prepare: BigInt(`0x${cursor.slice(16)}`) }
}

/** An event as it is sent: the store keeps the type, and all other fields are data. */
export interface Proposed {
  readonly id: string
  readonly type: string
  readonly data: Buffer
  readonly metadata: Buffer
}

/** Throws `bad_request` for data that cannot be converted to JSON. */
export const proposedOf = ({ id, event, metadata }: NewEvent, prefix: string): Proposed => {
  const { type, ...data } = event
  try {
    return {
      id,
      type: prefix + type,
      data: Buffer.from(JSON.stringify(data)),
      metadata: Buffer.from(JSON.stringify(metadata)),
    }
  } catch (cause) {
    throw new AppError('bad_request', `${type}: expected data that can be converted to JSON`, { cause })
  }
}

/**
 * Whether an event is of the installation with a prefix. The prefix of another one may begin with the same text, which can be
 * empty. Stream and type then go on with the same character, but no stream of the service begins like a type (`streamOf`).
 */
const isOwn = ({ streamId, type }: RecordedEvent, prefix: string): boolean =>
  !streamId.startsWith('$') &&
  streamId.startsWith(prefix) &&
  type.startsWith(prefix) &&
  streamId[prefix.length] !== type[prefix.length]

/** Converts a stored event. Returns null for events of the server and of other installations. */
export const recordedOf = (stored: RecordedEvent, prefix: string): Recorded | null => {
  if (!isOwn(stored, prefix)) return null
  const { streamId, type, position } = stored
  const metadata = stored.metadata as Metadata | undefined
  if (!stored.isJson || metadata?.correlation_id === undefined || !position) return null
  return upcast({
    id: stored.id,
    stream: streamId.slice(prefix.length),
    revision: Number(stored.revision),
    cursor: cursorOf(position),
    at: metadata.first_at ?? stored.created.toISOString(),
    event: { type: type.slice(prefix.length), ...(stored.data as object) } as DomainEvent,
    metadata,
  })
}
