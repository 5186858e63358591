import type { Log } from './log.ts'
import { type Stored, textOf } from './stored.ts'

/** An event as it is handed out; behind a link whose target is gone there is none. */
export interface Resolved {
  readonly event: Stored | undefined
  readonly link?: Stored
}

/** Follows a link, `revision@stream`, when the reader asked for that. */
export const resolve = (log: Log, stored: Stored, resolveLinks: boolean): Resolved => {
  if (!resolveLinks || stored.type !== '$>') return { event: stored }
  const [, revision = '', stream = ''] = /^(\d+)@(.*)$/s.exec(textOf(stored.data)) ?? []
  return { event: log.events(stream)[Number(revision)], link: stored }
}
