import type { SkippedFactDoc } from '../../projections/skippedFacts.ts'
import { PageQuery } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { list, operatorRoute } from '../route.ts'
import { SkippedFact } from '../schemas.ts'

const present = (doc: SkippedFactDoc) => fieldsOf(SkippedFact, doc)

export const skippedFactRoutes = [
  operatorRoute({
    tag: 'Operator',
    method: 'GET',
    path: '/operator/skipped-facts',
    operationId: 'listSkippedFacts',
    summary: 'List the facts that read models lack',
    description:
      'The fold of a read model failed on such a fact, because of a defect. The read model continued without it, so lists ' +
      'may differ from the log. A version of svc that folds the fact builds the read model again.',
    query: PageQuery,
    reply: { kind: 'list', schema: SkippedFact },
    handle: async ({ query, deps: { views } }) => {
      const { items, total } = await views.skippedFacts.find({
        equal: {},
        sort: 'order',
        descending: true,
        ...query,
      })
      return list(items.map(present), total, query)
    },
  }),
]
