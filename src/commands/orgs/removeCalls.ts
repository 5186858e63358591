import { isoOf } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { Doc } from '../../ports/readModels.ts'
import type { CommandDeps } from '../deps.ts'

const DAY_MS = 86_400_000

/** Documents of one read model that one fact removes: readers of all tenants wait until they are gone. */
const PER_FACT = 5000

/** The read models that `CallsExpired` removes documents from, with the field by which it finds them. */
const removedBy = [
  ['runs', 'order'],
  ['events', 'order'],
  ['audit', 'expiring'],
  ['auditLinks', 'expiring'],
] as const
const NAMES = removedBy.map(([name]) => name)

export type RemovalViews = Pick<CommandDeps['views'], (typeof NAMES)[number] | 'reach'>

/**
 * A day after which nothing of an environment began, also by a clock that is ahead. A removal keeps runs that have not ended
 * if they began in the two days before its day. `now`: milliseconds since 1970.
 */
export const dayAfterAll = (now: number): string => isoOf(now + 4 * DAY_MS).slice(0, 10)

/**
 * Removes the runs and events of an environment that began before a day, with what these runs did in the audit, in as many facts as keep each removal short. A fact
 * is appended when the read models have removed what the one before it names, so others are served in between. It may be
 * repeated, also by several nodes.
 */
export const removeCalls = async (
  { aggregates, views }: Pick<CommandDeps, 'aggregates'> & { readonly views: RemovalViews },
  { env_id, before }: { readonly env_id: string; readonly before: string },
  cause: EnvCause,
  perFact = PER_FACT,
): Promise<void> => {
  const stream = streamOf.calls(env_id)
  for (let from = ''; ;) {
    const up_to = await placeAfter(views, { env_id, from, before, count: perFact })
    const isPart = up_to !== undefined && up_to > from
    const command = { type: 'ExpireCalls', env_id, before, ...(isPart && { up_to }) } as const
    const { cursor } = await aggregates.calls.handle(stream, command, cause)
    if (!isPart) return
    if (cursor !== null) await views.reach(cursor, ...NAMES)
    from = up_to
  }
}

/** The first `order` with this number of documents before it in a read model, from another one on; undefined if there are fewer. */
const placeAfter = async (
  views: RemovalViews,
  {
    env_id,
    from,
    before,
    count,
  }: { readonly env_id: string; readonly from: string; readonly before: string; readonly count: number },
): Promise<string | undefined> => {
  const range = { equal: { env_id }, from, before, limit: 1, offset: count, totals: false } as const
  const found = await Promise.all(
    removedBy.map(async ([name, sort]) => {
      const [doc]: readonly Doc[] = (await views[name].find({ ...range, sort })).items
      return doc && String(doc[sort])
    }),
  )
  return found.filter((place) => place !== undefined).sort()[0]
}
