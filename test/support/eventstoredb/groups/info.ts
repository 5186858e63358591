import groups from '@eventstore/db-client/generated/persistent_pb.js'
import type { Log } from '../log.ts'
import type { From } from '../question.ts'
import type { Consumer } from './consumer.ts'
import { ALL } from './definition.ts'
import type { Group } from './group.ts'

/** The information about a group. */
export const infoOf = (log: Log, group: Group): groups.SubscriptionInfo => {
  const { stream, group: name, settings } = group.definition
  const { inFlight, retrying } = group.counts
  const total = group.consumers.reduce((sum, consumer) => sum + consumer.total, 0)
  const place = (at: number | undefined): string =>
    at === undefined || at < 0 ? '' : stream === ALL ? `C:${at}/P:${at}` : String(at)
  const info = new groups.SubscriptionInfo()
  info.setEventSource(stream)
  info.setGroupName(name)
  info.setStatus('Live')
  info.setConnectionsList(group.consumers.map(connectionOf))
  info.setTotalItems(String(total))
  info.setCountSinceLastMeasurement('0')
  info.setLastCheckpointedEventPosition(place(group.lastCheckpoint))
  info.setLastKnownEventPosition(
    place(stream === ALL ? log.all.at(-1)?.position : log.events(stream).length - 1),
  )
  info.setResolveLinkTos(settings.resolveLinks)
  info.setStartFrom(startOf(settings.from, stream))
  info.setMessageTimeoutMilliseconds(settings.messageTimeoutMs)
  info.setExtraStatistics(settings.extraStatistics)
  info.setMaxRetryCount(settings.maxRetries)
  info.setLiveBufferSize(settings.liveBufferSize)
  info.setBufferSize(settings.historyBufferSize)
  info.setReadBatchSize(settings.readBatchSize)
  info.setCheckPointAfterMilliseconds(settings.checkpointAfterMs)
  info.setMinCheckPointCount(settings.minCheckpointCount)
  info.setMaxCheckPointCount(settings.maxCheckpointCount)
  info.setLiveBufferCount('0')
  info.setRetryBufferCount(retrying)
  info.setTotalInFlightMessages(inFlight)
  info.setOutstandingMessagesCount(inFlight)
  info.setNamedConsumerStrategy(settings.strategy)
  info.setMaxSubscriberCount(settings.maxSubscribers)
  info.setParkedMessageCount(String(group.parked.count))
  return info
}

const startOf = (from: From, stream: string): string => {
  const place = from === 'start' ? 0 : from === 'end' ? -1 : from
  return stream === ALL ? `C:${place}/P:${place}` : String(place)
}

const connectionOf = ({ call, bufferSize, inFlight, total }: Consumer) => {
  const connection = new groups.SubscriptionInfo.ConnectionInfo()
  connection.setFrom(call.getPeer())
  connection.setUsername('anonymous')
  connection.setTotalItems(String(total))
  connection.setCountSinceLastMeasurement('0')
  connection.setAvailableSlots(bufferSize - inFlight)
  connection.setInFlightMessages(inFlight)
  connection.setConnectionName(String(call.metadata.get('connection-name')[0] ?? ''))
  return connection
}
