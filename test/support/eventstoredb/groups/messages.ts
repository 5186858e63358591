import groups from '@eventstore/db-client/generated/persistent_pb.js'
import type { Resolved } from '../links.ts'
import { fillRead } from '../wire.ts'

const { ReadEvent, SubscriptionConfirmation } = groups.ReadResp

export const deliveryMessage = (resolved: Resolved, retries: number): groups.ReadResp => {
  const read = fillRead(new ReadEvent(), () => new ReadEvent.RecordedEvent(), resolved)
  read.setRetryCount(retries)
  return new groups.ReadResp().setEvent(read)
}

export const joinedMessage = (stream: string, group: string): groups.ReadResp =>
  new groups.ReadResp().setSubscriptionConfirmation(
    new SubscriptionConfirmation().setSubscriptionId(`${stream}::${group}`),
  )
