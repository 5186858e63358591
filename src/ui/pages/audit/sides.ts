import type { Page } from '../../../client/index.ts'
import type { Resource } from './kind.ts'

/** The service returns no longer page. */
const PAGE = 100

/** What was read of a list as it was at one time, the newest first. */
interface Side {
  readonly items: ReadonlyMap<string, Resource>
  /** The place of the next page. What was created meanwhile is in front, and repeats others. */
  readonly offset: number
  /** The length of the list. */
  readonly total: number
  /** When the oldest resource that was read was created. Empty: everything was read. */
  readonly horizon: string
}

/** A list at the chosen time and at present. */
export interface Sides {
  readonly past: Side
  readonly present: Side
}

const UNREAD: Side = { items: new Map(), offset: 0, total: 0, horizon: '9999' }

export const NOTHING_READ: Sides = { past: UNREAD, present: UNREAD }

/** Reads one page of a list. */
export type PageAt = (page: { readonly limit: number; readonly offset: number }) => Promise<Page<Resource>>

const further = async (id: string, { items, offset }: Side, pageAt: PageAt): Promise<Side> => {
  const { data, pagination } = await pageAt({ limit: PAGE, offset })
  const all = new Map([...items, ...data.map((one) => [String(one[id]), one] as const)])
  const last = data.at(-1)
  return {
    items: all,
    offset: offset + data.length,
    total: pagination.total,
    horizon: last && pagination.has_more ? createdAt(last) : '',
  }
}

const createdAt = (one: Resource): string => String(one['created_at'])

export const isWhole = ({ past, present }: Sides): boolean => past.horizon === '' && present.horizon === ''

/**
 * The resources that can be compared: those of both sides, and those of one side that were created after the horizon of the
 * other one. Others may be on a page of the other side that was not read yet.
 */
export const comparable = (id: string, { past, present }: Sides) => {
  const of = (side: Side, other: Side): Resource[] =>
    [...side.items.values()].filter(
      (one) => other.items.has(String(one[id])) || createdAt(one) > other.horizon,
    )
  return { past: of(past, present), present: of(present, past) }
}

/** Reads on until `wanted` resources can be compared, or everything was read. */
export const readOn = async (
  id: string,
  read: Sides,
  at: { readonly past: PageAt; readonly present: PageAt },
  wanted: number,
): Promise<Sides> => {
  let sides = read
  for (;;) {
    const { past, present } = comparable(id, sides)
    if (isWhole(sides) || Math.max(past.length, present.length) >= wanted) return sides
    const next = sides.past.horizon > sides.present.horizon ? 'past' : 'present' // the side that is behind
    sides = { ...sides, [next]: await further(id, sides[next], at[next]) }
  }
}
