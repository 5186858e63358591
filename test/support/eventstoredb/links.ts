import type { Log } from './log.ts'
import { type Stored, textOf } from './stored.ts'

/** An event as it is delivered. A link whose target was deleted has no event. */
export interface Resolved {
  readonly event: Stored | undefined
  readonly link?: Stored
}

/** Resolves a link, `revision@stream`, if the reader requested it. */
export const resolve = (log: Log, stored: Stored, resolveLinks: boolean): Resolved => {
  if (!resolveLinks || stored.type !== '$>') return { event: stored }
  const [, revision = '', stream = ''] = /^(\d+)@(.*)$/s.exec(textOf(stored.data)) ?? []
  return { event: log.events(stream)[Number(revision)], link: stored }
}
