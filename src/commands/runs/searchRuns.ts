import { setImmediate as turn } from 'node:timers/promises'
import type { Query } from '../../ports/readModels.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'
import { chainOf } from './chainOf.ts'
import { isCounted, matcherOf, planSearch, type RunFilter } from './runFilter.ts'

/** The runs that one search looks at. A client continues with the runs before the last of them. */
export const MOST_SEARCHED = 5000
/** Runs that are read together. */
export const SEARCHED_TOGETHER = 50

type Views = Pick<CommandDeps['views'], 'runs'>

interface Range {
  /** Bounds of `order`: `from` inclusive, `before` exclusive. */
  readonly from?: string
  readonly before?: string
  readonly limit: number
  readonly offset: number
}

export interface FoundRuns {
  readonly items: readonly RunDoc[]
  /** The matching runs among those that the search looked at. */
  readonly total: number
  /** The `order` of the last run that the search looked at; absent if there are no more. */
  readonly searched_to?: string
}

/**
 * Returns one page of the runs that match, the newest first. The search reads at most `MOST_SEARCHED` runs along one
 * declared index, so its cost has a bound whatever the filters are.
 */
export const searchRuns = async (
  views: Views,
  { chain, ...filter }: RunFilter & { readonly chain?: string },
  range: Range,
): Promise<FoundRuns> => {
  if (chain !== undefined) return chainPage(await chainOf(views, chain), filter, range)
  const { path, matches, mayBeForeign } = planSearch(filter)
  const { limit, offset, ...bounds } = range
  const query = { ...path, ...bounds, descending: true, totals: false } as const
  if (mayBeForeign) {
    const [first] = (await views.runs.find({ ...query, limit: 1, offset: 0 })).items
    if (first?.env_id !== filter.env_id) return { items: [], total: 0 } // I7
  }
  if (isCounted(filter)) return views.runs.find({ ...query, totals: true, limit, offset })
  return matches ? walk(views, query, matches, range) : pageOf(views, query, range)
}

type Along = Omit<Query, 'limit' | 'offset'>

/** A page that the index alone decides. */
const pageOf = async ({ runs }: Views, query: Along, { limit, offset }: Range): Promise<FoundRuns> => {
  const most = Math.max(0, Math.min(limit, MOST_SEARCHED - offset))
  const { items } = most === 0 ? { items: [] } : await runs.find({ ...query, limit: most, offset })
  if (items.length < most && (items.length > 0 || offset === 0))
    return { items, total: offset + items.length }
  const [last, more] = (await runs.find({ ...query, limit: 2, offset: MOST_SEARCHED - 1 })).items
  if (last && more) return { items, total: MOST_SEARCHED, searched_to: last.order }
  const { total } = await runs.find({ ...query, totals: true, limit: 0, offset: 0 })
  return { items, total }
}

/** A page of those runs along an index that match. */
const walk = async (
  { runs }: Views,
  query: Along,
  matches: (doc: RunDoc) => boolean,
  { limit, offset }: Range,
): Promise<FoundRuns> => {
  const items: RunDoc[] = []
  let [total, before] = [0, query.before]
  for (let searched = 0; searched < MOST_SEARCHED; searched += SEARCHED_TOGETHER) {
    const page = await next(runs, query, before, SEARCHED_TOGETHER)
    for (const doc of page) {
      before = doc.order
      if (!matches(doc)) continue
      if (total++ >= offset && items.length < limit) items.push(doc)
    }
    if (page.length < SEARCHED_TOGETHER) return { items, total }
    await turn()
  }
  const hasMore = (await next(runs, query, before, 1)).length > 0
  return { items, total, ...(hasMore && before !== undefined && { searched_to: String(before) }) }
}

const next = async (runs: Views['runs'], query: Along, before: Query['before'], limit: number) =>
  (await runs.find({ ...query, ...(before !== undefined && { before }), limit, offset: 0 })).items

/** A chain is small: it is read as a whole. */
const chainPage = (
  chain: readonly RunDoc[],
  filter: RunFilter,
  { from = '', before, limit, offset }: Range,
): FoundRuns => {
  const matches = matcherOf(filter)
  const isIn = ({ order }: RunDoc) => order >= from && (before === undefined || order < before)
  const found = chain.filter((doc) => isIn(doc) && matches(doc)).toReversed()
  return { items: found.slice(offset, offset + limit), total: found.length }
}
