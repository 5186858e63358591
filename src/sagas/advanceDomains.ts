import { clock } from '../clock.ts'
import { advanceDomain } from '../commands/customDomains/advanceDomain.ts'
import { isRetryable, messageOf } from '../errors.ts'
import type { Cursor } from '../events/event.ts'
import { expireClaim, expiryOf } from '../commands/customDomains/expireClaim.ts'
import type { Logger } from '../logger.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { type DomainDoc, domains as projection } from '../projections/customDomains.ts'
import type { Views } from '../projections/views.ts'
import type { Saga, SagaCore } from './saga.ts'

const LONGEST_PAUSE_MS = 60 * 60 * 1000
/** A proved domain that does not lead here for this time is no longer checked, except by `verify`. */
const PATIENCE_MS = 7 * 24 * 60 * 60 * 1000

export type DomainInput =
  | { readonly type: 'changed'; readonly doc: DomainDoc }
  | { readonly type: 'gone'; readonly domain_id: string }
  | { readonly type: 'due'; readonly doc: DomainDoc }
  /** The domain was checked and its status did not change. */
  | { readonly type: 'unmoved'; readonly doc: DomainDoc }

/**
 * Checks a domain that waits for a record of its owner less and less often. `checkMs`: minimum time between two checks.
 */
export const advanceDomainsCore = (checkMs: number): SagaCore<null, DomainInput, DomainDoc> => ({
  initial: null,
  react(state, input, now) {
    const pauseOf = ({ since }: DomainDoc): number =>
      Math.min(Math.max(checkMs, (now - Date.parse(since)) / 10), LONGEST_PAUSE_MS)
    switch (input.type) {
      case 'changed': {
        const { doc } = input
        const wait = waitsForOwner(doc) ? pauseOf(doc) : 0
        return { state, steps: [{ do: 'drop', key: doc.domain_id }, ...alarmsOf(doc, now, wait)] }
      }
      case 'due':
        return { state, steps: [{ do: 'carryOut', key: input.doc.domain_id, command: input.doc }] }
      case 'unmoved':
        return { state, steps: alarmsOf(input.doc, now, pauseOf(input.doc)) }
      case 'gone':
        return { state, steps: [{ do: 'drop', key: input.domain_id }] }
      default:
        return input satisfies never
    }
  },
})

const waitsForOwner = ({ status }: DomainDoc): boolean =>
  status === 'pending_validation' || status === 'provisioning'

const alarmsOf = (doc: DomainDoc, now: number, waitMs: number) => {
  const isTooOld = doc.status === 'provisioning' && now - Date.parse(doc.since) > PATIENCE_MS
  if (doc.status === 'active' || isTooOld) return []
  const expiry = expiryOf(doc)
  const at = expiry !== null && expiry > now ? Math.min(expiry, now + waitMs) : now + waitMs
  return [{ do: 'setAlarm', key: doc.domain_id, at, input: { type: 'due', doc } } as const]
}

/**
 * Moves custom domains through their statuses (SPEC.md, Custom domain status), and removes deleted ones and those that
 * were not proved in time. Each step happens once, even if several nodes try. The read models contain everything up to `from`.
 */
export const advanceDomains = (
  deps: Parameters<typeof advanceDomain>[0] & {
    readonly store: Pick<EventStore, 'subscribe'>
    readonly views: Pick<Views, 'domains' | 'reach'>
    readonly from: Cursor
    readonly logger: Logger
    readonly checkMs: number
  },
): Saga<null, DomainInput, DomainDoc> => ({
  name: 'advanceDomains',
  ...advanceDomainsCore(deps.checkMs),

  async *inputs(signal) {
    const { store, views, from } = deps
    for await (const doc of views.domains.scan()) yield { type: 'changed', doc }
    const { handles: types } = projection
    for await (const { events, cursor } of store.subscribe({ after: from, types, signal })) {
      const ids = new Set(events.flatMap(({ event }) => ('domain_id' in event ? [event.domain_id] : [])))
      if (ids.size === 0) continue
      await views.reach(cursor)
      const docs = await views.domains.getMany([...ids])
      for (const domain_id of ids) {
        const doc = docs.get(domain_id)
        yield doc ? { type: 'changed', doc } : { type: 'gone', domain_id }
      }
    }
  },

  async carryOut(doc) {
    const unmoved = { type: 'unmoved', doc } as const // failures do not make the checks more frequent
    try {
      const { moved } = await advanceDomain(deps, doc, doc.domain_id)
      if (moved) return undefined // the next input comes from its fact
    } catch (error) {
      if (!isRetryable(error)) throw error
      const { domain } = doc
      deps.logger.warn('A custom domain could not be checked and is checked again later', {
        domain,
        error: messageOf(error),
      })
    }
    if ((expiryOf(doc) ?? Infinity) > clock.now()) return unmoved
    try {
      return (await expireClaim(deps, doc, doc.domain_id)) ? undefined : unmoved
    } catch (error) {
      if (!isRetryable(error)) throw error
      return unmoved
    }
  },
})
