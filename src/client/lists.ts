import type { Operations, Page } from './api.ts'
import type { RequestOptions } from './client.ts'
import { dataOf, type Send } from './transport.ts'

/** Items of one request while all pages are read: the largest page of the API. */
const PAGE = 100

type ListOperation = {
  [Operation in keyof Operations]: Operations[Operation] extends { readonly reply: Page<unknown> }
    ? Operation
    : never
}[keyof Operations]

type ItemOf<Operation extends ListOperation> = Operations[Operation] extends {
  readonly reply: Page<infer Item>
}
  ? Item
  : never

type QueryOf<Operation extends ListOperation> = Operations[Operation] extends { readonly query?: infer Query }
  ? Query
  : never

/** A list of the API, by pages and as a whole. */
export interface Lists<Operation extends ListOperation> {
  readonly list: (options?: QueryOf<Operation> & RequestOptions) => Promise<Page<ItemOf<Operation>>>
  readonly all: (
    options?: Omit<QueryOf<Operation> & RequestOptions, 'limit' | 'offset'>,
  ) => AsyncGenerator<ItemOf<Operation>, void, undefined>
}

/** The options of any list. */
type Given = RequestOptions & Readonly<Record<string, unknown>>

export const openLists = <Operation extends ListOperation>(
  send: Send,
  operation: Operation,
  idOf: (item: ItemOf<Operation>) => string,
  cursor?: Cursor,
): Lists<Operation> => {
  const page = async ({ signal, ...query }: Given) =>
    (await dataOf(await send(operation, { query, ...(signal && { signal }) }))) as Page<ItemOf<Operation>>
  return {
    list: (options) => page((options ?? {}) as Given),
    all: (options) =>
      allPages((query) => page({ ...(options as Given | undefined), ...query }), idOf, cursor),
  }
}

/** The parameter with which a list continues at `next` of its last page. */
type Cursor = 'before' | 'after'

/** The part of a list that one request asks for. */
export type PageQuery = { readonly limit: number; readonly offset: number } & {
  readonly [name in Cursor]?: string
}

/**
 * Reads all pages of a list, in its order, no item twice. The next page is read when its first item is wanted. Items that
 * are added or removed meanwhile shift the pages of a list without `next`, so others may be missing.
 */
export async function* allPages<Item>(
  page: (query: PageQuery) => Promise<Page<Item>>,
  idOf: (item: Item) => string,
  cursor: Cursor = 'before',
): AsyncGenerator<Item, void, undefined> {
  const known = new Set<string>()
  let from: { readonly [name in Cursor]?: string } = {}
  for (let offset = 0, hasMore = true; hasMore;) {
    const { data, pagination } = await page({ ...from, limit: PAGE, offset })
    const { has_more, next, searched_to } = pagination
    for (const item of data) {
      const id = idOf(item)
      if (known.has(id)) continue
      if (next === undefined) known.add(id)
      yield item
    }
    hasMore = has_more && data.length > 0
    offset += PAGE
    const end = next ?? (hasMore ? undefined : searched_to) // without an end, a search continues
    if (end !== undefined) [from, offset, hasMore] = [{ [cursor]: end }, 0, true]
  }
}
