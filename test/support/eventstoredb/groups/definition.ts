import groups from '@eventstore/db-client/generated/persistent_pb.js'
import { type FilterSpec, filterSpecOf } from '../filter.ts'
import type { From } from '../question.ts'
import { nameOf } from '../wire.ts'

export interface Settings {
  readonly from: From
  readonly resolveLinks: boolean
  readonly extraStatistics: boolean
  /** 0 means never. */
  readonly messageTimeoutMs: number
  readonly maxRetries: number
  readonly checkpointAfterMs: number
  readonly minCheckpointCount: number
  readonly maxCheckpointCount: number
  /** 0 means unlimited. */
  readonly maxSubscribers: number
  readonly liveBufferSize: number
  readonly readBatchSize: number
  readonly historyBufferSize: number
  readonly strategy: 'DispatchToSingle' | 'RoundRobin' | 'Pinned'
}

/** A group as it is stored. */
export interface Definition {
  /** `$all` for the whole log. */
  readonly stream: string
  readonly group: string
  readonly settings: Settings
  readonly filter?: FilterSpec
}

export const ALL = '$all'

/** The value that the client sends for the end of a stream. */
const END = 2 ** 64

const { ConsumerStrategy } = groups.CreateReq

const STRATEGIES: Readonly<Record<number, Settings['strategy']>> = {
  [ConsumerStrategy.DISPATCHTOSINGLE]: 'DispatchToSingle',
  [ConsumerStrategy.PINNED]: 'Pinned',
}

type Options = groups.CreateReq.Options | groups.UpdateReq.Options

/** An update has no filter: the group keeps its filter. */
export const definitionOf = (options: Options): Definition => {
  const all = options.getAll()
  const filter = filterMessageOf(all)
  return {
    stream: all ? ALL : nameOf(options.getStream()?.getStreamIdentifier() ?? options.getStreamIdentifier()),
    group: options.getGroupName(),
    settings: settingsOf(options),
    ...(filter ? { filter: filterSpecOf(filter) } : {}),
  }
}

const filterMessageOf = (all: groups.CreateReq.AllOptions | groups.UpdateReq.AllOptions | undefined) =>
  all && 'getFilter' in all ? all.getFilter() : undefined

const settingsOf = (options: Options): Settings => {
  const settings = options.getSettings()
  if (!settings) throw new Error('Expected settings of a group')
  return {
    from: fromOf(options),
    resolveLinks: settings.getResolveLinks(),
    extraStatistics: settings.getExtraStatistics(),
    messageTimeoutMs: settings.getMessageTimeoutMs(),
    maxRetries: settings.getMaxRetryCount(),
    checkpointAfterMs: settings.getCheckpointAfterMs(),
    minCheckpointCount: settings.getMinCheckpointCount(),
    maxCheckpointCount: settings.getMaxCheckpointCount(),
    maxSubscribers: settings.getMaxSubscriberCount(),
    liveBufferSize: settings.getLiveBufferSize(),
    readBatchSize: settings.getReadBatchSize(),
    historyBufferSize: settings.getHistoryBufferSize(),
    strategy: STRATEGIES[settings.getNamedConsumerStrategy()] ?? 'RoundRobin',
  }
}

/** The client sends the stream and its revision twice: in the old fields and in the new ones. */
const fromOf = (options: Options): From => {
  const place = options.getAll() ?? options.getStream()
  if (place?.hasEnd()) return 'end'
  if (place?.hasStart()) return 'start'
  const at = options.getAll()?.getPosition()?.getCommitPosition() ?? options.getStream()?.getRevision()
  const from = Number(at ?? options.getSettings()?.getRevision())
  return from === END ? 'end' : from
}
