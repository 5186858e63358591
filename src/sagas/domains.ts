import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Cursor } from '../events/event.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { type DomainDoc, domains as projection } from '../projections/domains.ts'
import type { Views } from '../projections/views.ts'
import { advanceDomain } from '../commands/advanceDomain.ts'
import type { Alarms } from './alarms.ts'

const LONGEST_PAUSE_MS = 60 * 60 * 1000
/** A record that was not made for this long is no longer looked for; `verify` still does. */
const PATIENCE_MS = 7 * 24 * 60 * 60 * 1000

type AdvanceDeps = Parameters<typeof advanceDomain>[0]

interface Deps extends AdvanceDeps {
  readonly store: EventStore
  readonly views: Pick<Views, 'domains' | 'reach'>
  readonly alarms: Alarms
  readonly logger: Logger
  /** The shortest time between two looks at the records of a domain, milliseconds. */
  readonly checkMs: number
}

/**
 * Takes custom domains through their statuses: looks for the records their owners are to make, ever more rarely, and
 * takes down what is deleted. Every node may: what one did is done. `from`: the read models hold all up to there.
 */
export const domains = async (deps: Deps, from: Cursor, signal: AbortSignal): Promise<void> => {
  const { store, views } = deps
  for await (const doc of views.domains.scan()) watch(deps, doc)
  for await (const { events, cursor } of store.subscribe({
    after: from,
    types: projection.handles,
    signal,
  })) {
    const ids = new Set(events.flatMap(({ event }) => ('domain_id' in event ? [event.domain_id] : [])))
    if (ids.size === 0) continue
    await views.reach(cursor)
    const docs = await views.domains.getMany([...ids])
    for (const id of ids) {
      const doc = docs.get(id)
      if (doc) watch(deps, doc)
      else deps.alarms.clear(keyOf(id))
    }
  }
}

const keyOf = (domain_id: string): string => `domain:${domain_id}`

/** Sets the alarm for the next look at a domain, if there is anything to look for. `again`: the last look failed. */
const watch = (deps: Deps, doc: DomainDoc, again = false): void => {
  const { alarms, checkMs } = deps
  const { domain_id, status } = doc
  const age = clock.now() - Date.parse(doc.since)
  const waitsForOwner = status === 'pending_validation' || status === 'provisioning'
  if (status === 'active' || (waitsForOwner && age > PATIENCE_MS)) return alarms.clear(keyOf(domain_id))
  const pause = Math.min(Math.max(checkMs, age / 10), LONGEST_PAUSE_MS)
  const at = waitsForOwner || again ? clock.now() + pause : clock.now()
  alarms.set(keyOf(domain_id), at, () => void look(deps, doc))
}

const look = async (deps: Deps, doc: DomainDoc): Promise<void> => {
  try {
    const { moved } = await advanceDomain(deps, doc, doc.domain_id)
    if (moved) return // the log tells what is next
  } catch (error) {
    const { domain } = doc
    deps.logger.warn('A custom domain cannot be looked after and is tried again', {
      domain,
      error: messageOf(error),
    })
  }
  watch(deps, doc, true)
}
