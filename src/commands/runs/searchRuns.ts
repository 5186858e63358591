import { reads } from '../../loops/slices.ts'
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

/** Runs as they were: filters of what changes apply to that state. */
export interface PastRuns {
  /** The runs that one search looks at, because each of them is folded again. */
  readonly most: number
  /** Returns those of the runs that had started, as they were. */
  asTheyWere(this: void, docs: readonly RunDoc[]): Promise<readonly RunDoc[]>
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
 * declared index, so its cost has a bound whatever the filters are. All searches together read little in one turn of the event loop.
 */
export const searchRuns = async (
  views: Views,
  { chain, ...filter }: RunFilter & { readonly chain?: string },
  range: Range,
  past?: PastRuns,
): Promise<FoundRuns> => {
  if (chain !== undefined) {
    const attempts = await chainOf(views, chain)
    return chainPage(past ? await past.asTheyWere(attempts) : attempts, filter, range)
  }
  const { path, matches, mayBeForeign } = planSearch(past ? lastingOf(filter) : filter)
  const { limit, offset, ...bounds } = range
  const query = { ...path, ...bounds, descending: true, totals: false } as const
  if (mayBeForeign) {
    const [first] = (await views.runs.find({ ...query, limit: 1, offset: 0 })).items
    if (first?.env_id !== filter.env_id) return { items: [], total: 0 } // I7
  }
  if (past && changes(filter)) {
    const select = async (docs: readonly RunDoc[]) => (await past.asTheyWere(docs)).filter(matcherOf(filter))
    return walk(views, query, range, { most: past.most, select })
  }
  const found = isCounted(filter)
    ? await views.runs.find({ ...query, totals: true, limit, offset })
    : matches
      ? await walk(views, query, range, { most: MOST_SEARCHED, select: (docs) => docs.filter(matches) })
      : await pageOf(views, query, range)
  return past ? { ...found, items: await past.asTheyWere(found.items) } : found
}

/** The part of a filter that a run matches from its start on. */
const lastingOf = ({
  status: _status,
  error_code: _code,
  final: _final,
  text: _text,
  ...lasting
}: RunFilter): RunFilter => lasting

const changes = ({ status, error_code, final, text }: RunFilter): boolean =>
  [status, error_code, final, text].some((each) => each !== undefined)

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

interface Selection {
  /** The runs that the search looks at. */
  readonly most: number
  /** Returns the runs that match. */
  readonly select: (docs: readonly RunDoc[]) => readonly RunDoc[] | Promise<readonly RunDoc[]>
}

/** A page of those runs along an index that match. */
const walk = async (
  { runs }: Views,
  query: Along,
  { limit, offset }: Range,
  { most, select }: Selection,
): Promise<FoundRuns> => {
  const items: RunDoc[] = []
  let [total, before] = [0, query.before]
  for (let searched = 0; searched < most; searched += SEARCHED_TOGETHER) {
    const wait = reads.take()
    if (wait) await wait
    const page = await next(runs, query, before, SEARCHED_TOGETHER)
    before = page.at(-1)?.order ?? before
    for (const doc of await select(page)) if (total++ >= offset && items.length < limit) items.push(doc)
    if (page.length < SEARCHED_TOGETHER) return { items, total }
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
