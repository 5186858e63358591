import shared from '@eventstore/db-client/generated/shared_pb.js'
import { createUUID, parseUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import type { Resolved } from './links.ts'
import { type Proposed, revisionText, type Stored } from './stored.ts'

/** Dates are sent in tenths of microseconds. */
const TICKS_PER_MS = 10_000n

/** A stored event as a message. Streams and groups have different types for it. */
interface RecordedMessage extends PositionMessage {
  getMetadataMap(): { set(name: string, value: string): unknown }
  setId(value: shared.UUID): unknown
  setStreamIdentifier(value: shared.StreamIdentifier): unknown
  setStreamRevision(value: string): unknown
  setData(value: Uint8Array): unknown
  setCustomMetadata(value: Uint8Array): unknown
}

const fill = <M extends RecordedMessage>(message: M, event: Stored): M => {
  message.setId(createUUID(event.id))
  message.setStreamIdentifier(identifierOf(event.stream))
  message.setStreamRevision(revisionText(event.revision))
  placed(message, event.position)
  message.setData(event.data)
  message.setCustomMetadata(event.metadata)
  const fields = message.getMetadataMap()
  fields.set('type', event.type)
  fields.set('content-type', event.contentType)
  fields.set('created', String(BigInt(event.created) * TICKS_PER_MS))
  return message
}

/** An event that a reader receives, or a link and its event. Streams and groups have different types for it. */
interface ReadMessage<R> {
  setEvent(value: R): unknown
  setLink(value: R): unknown
  setNoPosition(value: shared.Empty): unknown
  setCommitPosition(value: string): unknown
}

export const fillRead = <R extends RecordedMessage, M extends ReadMessage<R>>(
  message: M,
  newRecorded: () => R,
  { event, link }: Resolved,
): M => {
  if (event) message.setEvent(fill(newRecorded(), event))
  if (link) message.setLink(fill(newRecorded(), link))
  const position = (link ?? event)?.position
  if (position === undefined) message.setNoPosition(new shared.Empty())
  else message.setCommitPosition(String(position))
  return message
}

/** A proposed event as a message. */
interface ProposedMessage {
  getId(): shared.UUID | undefined
  getMetadataMap(): { get(name: string): string | undefined }
  getData_asU8(): Uint8Array
  getCustomMetadata_asU8(): Uint8Array
}

/** A missing type or id is empty. */
export const proposedOf = (message: ProposedMessage): Proposed => ({
  id: uuidOf(message.getId()),
  type: message.getMetadataMap().get('type') ?? '',
  contentType: message.getMetadataMap().get('content-type') ?? 'application/octet-stream',
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8(),
})

export const sizeOf = ({ type, data, metadata }: Proposed): number =>
  type.length + data.length + metadata.length

export const uuidOf = (id: shared.UUID | undefined): string => (id && parseUUID(id)) ?? ''

export const identifierOf = (stream: string): shared.StreamIdentifier => {
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream))
  return identifier
}

export const nameOf = (identifier: shared.StreamIdentifier | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8')

/** A position as a message. Most messages have their own type for it. */
interface PositionMessage {
  setCommitPosition(value: string): unknown
  setPreparePosition(value: string): unknown
}

export const placed = <M extends PositionMessage>(message: M, position: number): M => {
  message.setCommitPosition(String(position))
  message.setPreparePosition(String(position))
  return message
}
