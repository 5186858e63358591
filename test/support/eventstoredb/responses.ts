import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { Resolved } from './links.ts'
import { fillRead, identifierOf, placed } from './wire.ts'

const { ReadEvent, Checkpoint, CaughtUp, FellBehind, StreamNotFound, SubscriptionConfirmation } =
  streams.ReadResp

/** The messages of the reply to a read. */
export const eventMessage = (read: Resolved): streams.ReadResp =>
  new streams.ReadResp().setEvent(fillRead(new ReadEvent(), () => new ReadEvent.RecordedEvent(), read))

export const checkpointMessage = (position: number): streams.ReadResp =>
  new streams.ReadResp().setCheckpoint(placed(new Checkpoint(), position))

export const notFoundMessage = (stream: string): streams.ReadResp =>
  new streams.ReadResp().setStreamNotFound(new StreamNotFound().setStreamIdentifier(identifierOf(stream)))

export const confirmationMessage = (id: string): streams.ReadResp =>
  new streams.ReadResp().setConfirmation(new SubscriptionConfirmation().setSubscriptionId(id))

export const caughtUpMessage = (): streams.ReadResp => new streams.ReadResp().setCaughtUp(new CaughtUp())

export const fellBehindMessage = (): streams.ReadResp =>
  new streams.ReadResp().setFellBehind(new FellBehind())
