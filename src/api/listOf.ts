import type { Query } from '../ports/readModels.ts'
import type { DocOf, ViewName, Views } from '../projections/views.ts'
import { list, type Reply } from './route.ts'

/**
 * Replies with one page of a read model that contains everything appended so far (I2). The newest document comes first
 * unless the query has its own `sort`.
 */
export const listOf = async <N extends ViewName>(
  views: Views,
  name: N,
  query: Pick<Query, 'equal' | 'limit' | 'offset'> & Partial<Query>,
  present: (doc: DocOf<N>) => unknown,
): Promise<Reply> => {
  await views.settled(name)
  const { items, total } = await views[name].find({
    ...(query.sort === undefined && { descending: true }),
    sort: 'order',
    ...query,
  })
  return list(await Promise.all(items.map((doc) => present(doc as DocOf<N>))), total, query)
}
