import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Cursor } from '../../events/event.ts'
import type { EventType } from '../../events/index.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { Found, Query } from '../../ports/readModels.ts'
import type { AuditDoc, AuditLinkDoc } from '../../projections/audit.ts'
import type { CommandDeps } from '../deps.ts'
import { pastTimeOf, positionOf, timeOf } from './moment.ts'

type Deps = {
  readonly store: Pick<CommandDeps['store'], 'isCursor' | 'head'>
  readonly views: Pick<CommandDeps['views'], 'audit' | 'auditLinks' | 'settled'>
}

export interface AuditQuery {
  /** Only facts of this environment; absent: of the whole installation. */
  readonly env_id?: string | undefined
  readonly actor?: string | undefined
  /** An id or name that the fact contains. */
  readonly resource?: string | undefined
  readonly type?: EventType | undefined
  /** Times: `from` inclusive, `to` exclusive. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Only facts after this position, the oldest first; `start`: all of them. Without it, the newest is first. */
  readonly after?: string | undefined
  readonly limit: number
  readonly offset: number
}

const NONE: Found<AuditDoc> = { items: [], total: 0 }

/** Resolves with one page of the audit. Rejects with `bad_request` that names the wrong parameter. */
export const findAudited = async (
  deps: Deps,
  { env_id, actor, resource, type, from, to, after, limit, offset }: AuditQuery,
): Promise<Found<AuditDoc>> => {
  const begins = from === undefined ? undefined : pastTimeOf('from', from, clock.now())
  const ends = to === undefined ? undefined : timeOf('to', to)
  if (begins !== undefined && ends !== undefined && begins > ends)
    throw new AppError('bad_request', `to: expected a time after from (${begins}), got ${ends}`)
  const beyond = after === undefined || after === 'start' ? undefined : await positionOf('after', after, deps)
  await deps.views.settled('audit', 'auditLinks')
  const first = begins === undefined ? undefined : await firstSince(deps, begins)
  if (first === null) return NONE
  const last = ends === undefined ? null : await firstSince(deps, ends)
  const lower = [first, beyond === undefined ? undefined : justAfter(beyond)]
    .filter((bound) => bound !== undefined)
    .sort()
    .at(-1)
  const bounds = {
    sort: 'position',
    ...(lower !== undefined && { from: lower }),
    ...(last !== null && { before: last }),
  } as const
  const inEnv = env_id === undefined ? {} : { env_id }
  const page = { ...(after === undefined && { descending: true }), limit, offset }
  if (resource === undefined) {
    const equal = { ...inEnv, ...(actor !== undefined && { actor }), ...(type !== undefined && { type }) }
    return deps.views.audit.find({ equal, ...bounds, ...page })
  }
  const links = { equal: { ...inEnv, resource }, ...bounds }
  const { items, total } =
    actor === undefined && type === undefined
      ? await deps.views.auditLinks.find({ ...links, ...page })
      : pageOf(await linksBy(deps, links, { actor, type }), page)
  return { items: await factsAt(deps, items), total }
}

/** The links of one resource that a query with further conditions reads. */
const MAX_LINKS = 20_000

/** The links of a resource to facts of an actor or type, from the oldest on. Rejects with `bad_request` for too many. */
const linksBy = async (
  { views: { auditLinks } }: Deps,
  links: Pick<Query, 'equal' | 'before'> & { readonly from?: string },
  { actor, type }: Pick<AuditQuery, 'actor' | 'type'>,
): Promise<AuditLinkDoc[]> => {
  const found: AuditLinkDoc[] = []
  let read = 0
  for await (const link of everyDoc(auditLinks, { id: 'position', sort: 'position', ...links })) {
    if (++read > MAX_LINKS)
      throw new AppError(
        'bad_request',
        `resource: it has more than ${MAX_LINKS} changes; limit them by from and to, or leave out actor and type`,
      )
    const fits = (actor === undefined || link.actor === actor) && (type === undefined || link.type === type)
    if (fits) found.push(link)
  }
  return found
}

const pageOf = (
  links: readonly AuditLinkDoc[],
  { descending, limit, offset }: Pick<Query, 'descending' | 'limit' | 'offset'>,
): Found<AuditLinkDoc> => ({
  items: (descending ? links.toReversed() : links).slice(offset, offset + limit),
  total: links.length,
})

/** The least text that sorts after a position and before the next one. */
const justAfter = (position: Cursor): string => `${position} `

/** The position of the first audited fact that was stored at a time or later; null if there is none. */
const firstSince = async ({ views: { audit } }: Deps, time: string): Promise<Cursor | null> => {
  const query = { equal: {}, sort: 'order', limit: 1, offset: 0, totals: false } as const
  return (await audit.find({ ...query, from: time })).items[0]?.position ?? null
}

/** The facts that links point to. */
const factsAt = async (
  { views: { audit } }: Deps,
  items: readonly AuditLinkDoc[],
): Promise<readonly AuditDoc[]> => {
  const facts = await audit.getMany(items.map(({ position }) => position))
  return items.flatMap(({ position }) => facts.get(position) ?? [])
}
