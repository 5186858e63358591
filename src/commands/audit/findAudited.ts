import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Cursor } from '../../events/event.ts'
import type { EventType } from '../../events/index.ts'
import type { Found } from '../../ports/readModels.ts'
import type { AuditDoc } from '../../projections/audit.ts'
import type { CommandDeps } from '../deps.ts'
import { pastTimeOf, positionOf, timeOf } from './moment.ts'

type Deps = {
  readonly store: Pick<CommandDeps['store'], 'isCursor' | 'head'>
  readonly views: Pick<CommandDeps['views'], 'audit' | 'settled'>
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
  { env_id, actor, resource = '', type, from, to, after, limit, offset }: AuditQuery,
): Promise<Found<AuditDoc>> => {
  const { audit } = deps.views
  const begins = from === undefined ? undefined : pastTimeOf('from', from, clock.now())
  const ends = to === undefined ? undefined : timeOf('to', to)
  if (begins !== undefined && ends !== undefined && begins > ends)
    throw new AppError('bad_request', `to: expected a time after from (${begins}), got ${ends}`)
  const beyond = after === undefined || after === 'start' ? undefined : await positionOf('after', after, deps)
  await deps.views.settled('audit')
  const first = begins === undefined ? undefined : await firstSince(deps, begins)
  if (first === null) return NONE
  const last = ends === undefined ? null : await firstSince(deps, ends)
  const lower = [first, beyond === undefined ? undefined : justAfter(beyond)]
    .filter((bound) => bound !== undefined)
    .sort()
    .at(-1)
  const found = await audit.find({
    equal: {
      ...(env_id !== undefined && { env_id }),
      resource,
      ...(actor !== undefined && { actor }),
      ...(type !== undefined && { type }),
    },
    sort: 'position',
    ...(after === undefined && { descending: true }),
    ...(lower !== undefined && { from: lower }),
    ...(last !== null && { before: last }),
    limit,
    offset,
  })
  return resource === '' ? found : { ...found, items: await factsAt(deps, found.items) }
}

/** The least text that sorts after a position and before the next one. */
const justAfter = (position: Cursor): string => `${position} `

/** The position of the first audited fact that was stored at a time or later; null if there is none. */
const firstSince = async ({ views: { audit } }: Deps, time: string): Promise<Cursor | null> => {
  const query = { equal: { resource: '' }, sort: 'order', limit: 1, offset: 0, totals: false } as const
  return (await audit.find({ ...query, from: time })).items[0]?.position ?? null
}

/** The documents of the facts that documents with a resource point to. */
const factsAt = async (
  { views: { audit } }: Deps,
  items: readonly AuditDoc[],
): Promise<readonly AuditDoc[]> => {
  const facts = await audit.getMany(items.map(({ position }) => position))
  return items.flatMap(({ position }) => facts.get(position) ?? [])
}
