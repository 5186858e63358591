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
): Lists<Operation> => {
  const page = async ({ signal, ...query }: Given) =>
    (await dataOf(await send(operation, { query, ...(signal && { signal }) }))) as Page<ItemOf<Operation>>
  return {
    list: (options) => page((options ?? {}) as Given),
    all: (options) => allPages((query) => page({ ...(options as Given | undefined), ...query }), idOf),
  }
}

/** The part of a list that one request asks for. */
export interface PageQuery {
  readonly limit: number
  readonly offset: number
  readonly before?: string
}

/** Reads all pages of a list, in its order. The next page is read when its first item is wanted. */
export async function* allPages<Item>(
  page: (query: PageQuery) => Promise<Page<Item>>,
  idOf: (item: Item) => string,
): AsyncGenerator<Item, void, undefined> {
  // Items that were added meanwhile shift those of the last page into this one.
  let last = new Set<string>()
  let before: { readonly before?: string } = {}
  for (let offset = 0, hasMore = true; hasMore;) {
    const { data, pagination } = await page({ ...before, limit: PAGE, offset })
    for (const item of data) if (!last.has(idOf(item))) yield item
    last = new Set(data.map(idOf))
    const { has_more, searched_to } = pagination
    hasMore = has_more && data.length > 0
    offset += PAGE
    if (hasMore || searched_to === undefined) continue
    ;[before, offset, hasMore] = [{ before: searched_to }, 0, true] // the search continues
  }
}
