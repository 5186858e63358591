import groups from '@eventstore/db-client/generated/persistent_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type { Resolved } from '../links.ts'
import { fill } from '../wire.ts'

const { ReadEvent, SubscriptionConfirmation } = groups.ReadResp

export const deliveryMessage = ({ event, link }: Resolved, retries: number): groups.ReadResp => {
  const read = new ReadEvent()
  if (event) read.setEvent(fill(new ReadEvent.RecordedEvent(), event))
  if (link) read.setLink(fill(new ReadEvent.RecordedEvent(), link))
  const position = (link ?? event)?.position
  if (position === undefined) read.setNoPosition(new shared.Empty())
  else read.setCommitPosition(String(position))
  read.setRetryCount(retries)
  return new groups.ReadResp().setEvent(read)
}

export const joinedMessage = (stream: string, group: string): groups.ReadResp =>
  new groups.ReadResp().setSubscriptionConfirmation(
    new SubscriptionConfirmation().setSubscriptionId(`${stream}::${group}`),
  )
