import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { Resolved } from './links.ts'
import { fill, identifierOf, placed } from './wire.ts'

const { ReadEvent, Checkpoint, CaughtUp, FellBehind, StreamNotFound, SubscriptionConfirmation } =
  streams.ReadResp

/** The messages of the reply to a read. */
export const eventMessage = ({ event, link }: Resolved): streams.ReadResp => {
  const read = new ReadEvent()
  if (event) read.setEvent(fill(new ReadEvent.RecordedEvent(), event))
  if (link) read.setLink(fill(new ReadEvent.RecordedEvent(), link))
  const position = (link ?? event)?.position
  if (position === undefined) read.setNoPosition(new shared.Empty())
  else read.setCommitPosition(String(position))
  return new streams.ReadResp().setEvent(read)
}

export const checkpointMessage = (position: number): streams.ReadResp =>
  new streams.ReadResp().setCheckpoint(placed(new Checkpoint(), position))

export const notFoundMessage = (stream: string): streams.ReadResp =>
  new streams.ReadResp().setStreamNotFound(new StreamNotFound().setStreamIdentifier(identifierOf(stream)))

export const confirmationMessage = (id: string): streams.ReadResp =>
  new streams.ReadResp().setConfirmation(new SubscriptionConfirmation().setSubscriptionId(id))

export const caughtUpMessage = (): streams.ReadResp => new streams.ReadResp().setCaughtUp(new CaughtUp())

export const fellBehindMessage = (): streams.ReadResp =>
  new streams.ReadResp().setFellBehind(new FellBehind())
