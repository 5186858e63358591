import type { Log } from '../log.ts'
import { textOf } from '../stored.ts'
import { systemEvent } from '../systemEvents.ts'
import type { Definition } from './definition.ts'

/** The stream of the server's groups. Its last event lists them all. */
const STREAM = '$persistentSubscriptionConfig'

/** All groups. Nodes that share a log share them. */
export const groupsIn = (log: Log): readonly Definition[] => {
  const last = log.events(STREAM).at(-1)
  return last ? (JSON.parse(textOf(last.data)) as Definition[]) : []
}

export const findGroup = (log: Log, stream: string, group: string): Definition | undefined =>
  groupsIn(log).find((one) => one.stream === stream && one.group === group)

/** Adds a group or changes it. */
export const storeGroup = (log: Log, definition: Definition): void =>
  store(log, [...without(log, definition.stream, definition.group), definition])

export const removeGroup = (log: Log, stream: string, group: string): void =>
  store(log, without(log, stream, group))

const without = (log: Log, stream: string, group: string): Definition[] =>
  groupsIn(log).filter((one) => one.stream !== stream || one.group !== group)

const store = (log: Log, definitions: readonly Definition[]): void =>
  void log.append(STREAM, [systemEvent('$PersistentConfig', JSON.stringify(definitions))], 'any')
