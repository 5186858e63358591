import Type, { type TProperties } from 'typebox'
import type { Query } from '../ports/readModels.ts'
import type { DocOf, ViewName, Views } from '../projections/views.ts'
import { holding } from '../loops/byteBudget.ts'
import { DOCUMENT_BYTES } from './http/memory.ts'
import { type Ask, list, type Reply } from './route.ts'

/** The query parameters of every list (SPEC.md, Pagination). */
export const Paging = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Maximum number of results' }),
  offset: Type.Integer({ minimum: 0, maximum: 1e9, default: 0, description: 'Number of results to skip' }),
}
/** Returns the query of a list that has filters of its own. */
export const pageQuery = <P extends TProperties>(more: P) => Type.Object({ ...Paging, ...more })
export const PageQuery = Type.Object(Paging)

/** Replies with one page of documents that can have up to 64 KiB each, with memory of the organization for them. */
export const largeListOf = async <N extends ViewName>(
  { deps: { views, memory }, credential }: Pick<Ask, 'deps' | 'credential'>,
  ...[name, query, present, cursorOf]: AfterFirst<Parameters<typeof listOf<N>>>
): Promise<Reply> =>
  holding(
    memory.values,
    { owner: memory.ownerOf(credential.env_id), bytes: query.limit * DOCUMENT_BYTES },
    () => listOf(views, name, query, present, cursorOf),
  )

type AfterFirst<List> = List extends [unknown, ...infer Rest] ? Rest : never

/**
 * Replies with one page of a read model that contains everything appended so far (I2). The newest document comes first
 * unless the query has its own `sort`. `cursorOf`: the bound with which a list continues after a document.
 */
export const listOf = async <N extends ViewName>(
  views: Views,
  name: N,
  query: Pick<Query, 'equal' | 'limit' | 'offset'> & Partial<Query>,
  present: (doc: DocOf<N>) => unknown,
  cursorOf?: (doc: DocOf<N>) => string,
): Promise<Reply> => {
  await views.settled(name)
  const { items, total } = await views[name].find({
    ...(query.sort === undefined && { descending: true }),
    sort: 'order',
    ...query,
  })
  const last = query.offset + items.length < total ? items.at(-1) : undefined
  return {
    ...list(await Promise.all(items.map((doc) => present(doc as DocOf<N>))), total, query),
    ...(last && cursorOf && { next: cursorOf(last as DocOf<N>) }),
  }
}
