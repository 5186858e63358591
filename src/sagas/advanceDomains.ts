import { clock } from '../clock.ts'
import { type AdvanceDeps, advanceDomain } from '../commands/customDomains/advanceDomain.ts'
import { renewalOf } from '../commands/customDomains/certificateTimes.ts'
import { expireClaim, expiryOf } from '../commands/customDomains/expireClaim.ts'
import {
  FIRST_PAUSE_CHECKS,
  type IssueDeps,
  issueCertificate,
  LONGEST_ASKED_MS,
} from '../commands/customDomains/issueCertificate.ts'
import { type RemoveDeps, removeDomain } from '../commands/customDomains/removeDomain.ts'
import { isRetryable, messageOf } from '../errors.ts'
import { bySystem } from '../events/actor.ts'
import type { Cause } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Logger } from '../logger.ts'
import { FairPlaces } from '../loops/fairPlaces.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { type DomainDoc, domains as projection } from '../projections/customDomains.ts'
import type { Views } from '../projections/views.ts'
import type { Saga, SagaCore } from './saga.ts'

const LONGEST_PAUSE_MS = 60 * 60 * 1000
/** A proved domain that does not lead here for this time is checked as rarely as an active one. */
const PATIENCE_MS = 7 * 24 * 60 * 60 * 1000
/** Orders in progress. */
const PLACES = { total: 8, perFree: 1 }
/**
 * Orders of an organization in a time: a third of what Let's Encrypt permits to the account that all organizations share.
 * Otherwise, one that registers and deletes domains again and again would use up the orders of all.
 */
const MAX_ORDERS = 100
const ORDERS_MS = 3 * 60 * 60 * 1000
/** No failed order waits longer, with an hour for the difference of clocks: a later time was stored while a clock was ahead. */
const LONGEST_WAIT_MS = LONGEST_ASKED_MS + 60 * 60 * 1000

/** `check` compares the domain with its DNS records, `issue` orders its first or next certificate. */
interface Work {
  readonly task: 'check' | 'issue' | 'remove'
  readonly doc: DomainDoc
}

export type DomainInput =
  | { readonly type: 'changed'; readonly doc: DomainDoc }
  | { readonly type: 'gone'; readonly domain_id: string }
  | { readonly type: 'due'; readonly work: Work }
  /** The domain was checked and its status did not change, or its removal failed. */
  | { readonly type: 'unmoved'; readonly doc: DomainDoc }
  /** The result of an order could not be stored. */
  | { readonly type: 'unordered'; readonly doc: DomainDoc }
  /** The alarm of an order rang before its time: the clock was set back, or the domain has changed meanwhile. */
  | { readonly type: 'early'; readonly doc: DomainDoc }

/** The times of the latest orders by organization, milliseconds since 1970; the oldest first. */
type Orders = ReadonlyMap<string, readonly number[]>

interface Times {
  /** Minimum time between two checks. */
  readonly checkMs: number
  /** Time between two checks of a domain that needs nothing. */
  readonly recheckMs: number
  /** Whether this service orders certificates. */
  readonly issues: boolean
}

/**
 * Checks a domain that waits for its owner less and less often, and an active one regularly. Certificates are ordered beside the
 * checks, under a key of their own: a change of the domain does not drop an order in progress.
 */
export const advanceDomainsCore = (times: Times): SagaCore<Orders, DomainInput, Work> => ({
  initial: new Map(),
  react(state, input, now) {
    switch (input.type) {
      case 'changed': {
        const { doc } = input
        const issueAt = issueTimeOf(doc, now, times)
        return {
          state,
          steps: [
            { do: 'drop', key: doc.domain_id },
            ...checksOf(doc, isWaiting(doc, times) ? now + pauseOf(doc, now, times) : now, now, times),
            issueAt === null
              ? { do: 'drop', key: orderKey(doc) }
              : { do: 'setAlarm', key: orderKey(doc), at: issueAt, input: due('issue', doc) },
          ],
        }
      }
      case 'due': {
        const { work } = input
        const { task, doc } = work
        if (task !== 'issue') return { state, steps: [{ do: 'carryOut', key: doc.domain_id, command: work }] }
        const key = orderKey(doc)
        const latest = latestOrders(state, now)
        const placed = latest.get(doc.org_id) ?? []
        const [oldest] = placed
        if (oldest !== undefined && placed.length >= MAX_ORDERS)
          return { state: latest, steps: [{ do: 'setAlarm', key, at: oldest + ORDERS_MS, input }] }
        return {
          state: new Map([...latest, [doc.org_id, [...placed, now]]]),
          steps: [{ do: 'carryOut', key, command: work }],
        }
      }
      case 'unmoved':
        return { state, steps: checksOf(input.doc, now + pauseOf(input.doc, now, times), now, times) }
      case 'unordered': {
        const at = now + times.checkMs * FIRST_PAUSE_CHECKS
        return {
          state,
          steps: [{ do: 'setAlarm', key: orderKey(input.doc), at, input: due('issue', input.doc) }],
        }
      }
      case 'early': {
        const { doc } = input
        const at = issueTimeOf(doc, now, times)
        if (at === null) return { state, steps: [] }
        return { state, steps: [{ do: 'setAlarm', key: orderKey(doc), at, input: due('issue', doc) }] }
      }
      case 'gone':
        return {
          state,
          steps: [
            { do: 'drop', key: input.domain_id },
            { do: 'drop', key: orderKey(input) },
          ],
        }
      default:
        return input satisfies never
    }
  },
})

const orderKey = ({ domain_id }: { readonly domain_id: string }): string => `${domain_id}/certificate`

/** An order that was placed before the clock was set back counts as one of now: otherwise, it would count for too long. */
const latestOrders = (orders: Orders, now: number): Orders => {
  const latest = [...orders].map(([org_id, at]) => {
    const placed = at.map((time) => Math.min(time, now))
    return [org_id, placed.filter((time) => time > now - ORDERS_MS)] as const
  })
  return new Map(latest.filter(([, at]) => at.length > 0))
}

const due = (task: Work['task'], doc: DomainDoc) => ({ type: 'due', work: { task, doc } }) as const

const isWaiting = ({ status, is_proved }: DomainDoc, { issues }: Times): boolean =>
  (status === 'pending_validation' && !(is_proved && !issues)) ||
  status === 'provisioning' ||
  status === 'active'

/** The longer a domain waits, the rarer its checks. */
const pauseOf = ({ since, diverted }: DomainDoc, now: number, { checkMs }: Times): number =>
  Math.min(Math.max(checkMs, (now - Date.parse(diverted?.since ?? since)) / 10), LONGEST_PAUSE_MS)

const checksOf = (doc: DomainDoc, soon: number, now: number, { recheckMs }: Times) => {
  const { status, diverted, since } = doc
  const isStill = status === 'active' || (status === 'provisioning' && now - Date.parse(since) > PATIENCE_MS)
  const next = isStill && !diverted ? turnOf(doc, now, recheckMs) : soon
  const expiry = expiryOf(doc)
  const at = expiry !== null && expiry > now ? Math.min(expiry, next) : next
  const task = status === 'deleting' ? 'remove' : 'check'
  return [{ do: 'setAlarm', key: doc.domain_id, at, input: due(task, doc) } as const]
}

/** The next of the instants at which a domain has its turn: they differ by domain, and restarts do not move them. */
const turnOf = ({ domain_id }: DomainDoc, now: number, recheckMs: number): number => {
  const offset = Number.parseInt(domain_id.slice(-8), 16) % recheckMs
  return Math.floor((now - offset) / recheckMs + 1) * recheckMs + offset
}

/** The time at which a certificate must be ordered; null for none. */
const issueTimeOf = (doc: DomainDoc, now: number, { issues }: Times): number | null => {
  if (!issues || !doc.is_proved || doc.status === 'deleting') return null
  if (doc.failure) {
    const at = Date.parse(doc.failure.retry_at)
    return at > now + LONGEST_WAIT_MS ? now : at
  }
  return doc.certificate ? renewalOf(doc.certificate) : now
}

const fieldsOf = ({ domain }: DomainDoc, error: unknown) => ({ domain, error: messageOf(error) })

/** Progress of an order changes nothing for the saga. */
const PROGRESS: ReadonlySet<EventType> = new Set(['ChallengePublished'])

const causeOf = ({ domain_id }: DomainDoc): Cause => ({ correlation_id: domain_id, ...bySystem('domains') })

type Deps = AdvanceDeps &
  RemoveDeps &
  Omit<IssueDeps, 'certificates'> & {
    readonly store: Pick<EventStore, 'subscribe'>
    readonly views: Pick<Views, 'domains' | 'reach' | 'completeTo'>
    readonly logger: Logger
  }

/**
 * Moves custom domains through their statuses (SPEC.md, Custom domain status), orders and renews their certificates, and
 * removes deleted ones and those that were not proved in time. Each step takes effect once, even if several nodes try;
 * orders are placed by the holder of a lease.
 */
export const advanceDomains = (deps: Deps): Saga<Orders, DomainInput, Work> => {
  const { certificates, checkMs, domainRecheckMs: recheckMs, logger } = deps
  const places = new FairPlaces(PLACES)
  const times = { checkMs, recheckMs, issues: certificates !== null }
  /** Orders a certificate, unless the domain has changed since its order was due. */
  const order = async ({ domain_id }: DomainDoc): Promise<DomainInput | undefined> => {
    const doc = await deps.views.domains.get(domain_id)
    if (!certificates || !doc) return undefined
    const now = clock.now()
    if ((issueTimeOf(doc, now, times) ?? Infinity) > now) return { type: 'early', doc }
    await issueCertificate({ ...deps, certificates }, doc)
    return undefined // the next input comes from its fact
  }
  return {
    name: 'advanceDomains',
    ...advanceDomainsCore(times),

    async *inputs(signal) {
      const { store, views } = deps
      const from = await views.completeTo('domains', signal)
      if (signal.aborted) return
      for await (const doc of views.domains.scan()) yield { type: 'changed', doc }
      const types = projection.handles.filter((type) => !PROGRESS.has(type))
      for await (const { events, cursor } of store.subscribe({ after: from, types, signal })) {
        const ids = new Set(events.flatMap(({ event }) => ('domain_id' in event ? [event.domain_id] : [])))
        if (ids.size === 0) continue
        await views.reach(cursor, 'domains')
        const docs = await views.domains.getMany([...ids])
        for (const domain_id of ids) {
          const doc = docs.get(domain_id)
          yield doc ? { type: 'changed', doc } : { type: 'gone', domain_id }
        }
      }
    },

    async carryOut({ task, doc }, signal) {
      if (task === 'issue') {
        await places.take(doc.org_id, signal) // an order that waits when the lease ends is the one of the next holder
        try {
          return await order(doc)
        } catch (error) {
          if (!isRetryable(error)) throw error
          logger.warn('The result of an order for a certificate could not be stored', fieldsOf(doc, error))
          return { type: 'unordered', doc }
        } finally {
          places.giveBack(doc.org_id)
        }
      }
      const unmoved = { type: 'unmoved', doc } as const // failures do not make the checks more frequent
      try {
        if (task === 'remove') {
          await removeDomain(deps, doc, causeOf(doc))
          return undefined
        }
        if ((await advanceDomain(deps, doc, causeOf(doc))).moved) return undefined
      } catch (error) {
        if (!isRetryable(error)) throw error
        logger.warn(
          'A custom domain could not be checked or removed and is tried again later',
          fieldsOf(doc, error),
        )
      }
      if ((expiryOf(doc) ?? Infinity) > clock.now()) return unmoved
      try {
        return (await expireClaim(deps, doc, doc.domain_id)) ? undefined : unmoved
      } catch (error) {
        if (!isRetryable(error)) throw error
        return unmoved
      }
    },
  }
}
