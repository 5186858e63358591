import Type from 'typebox'
import { item, operatorRoute } from '../route.ts'
import { ReadModelStatus } from '../schemas.ts'

const tag = 'Operator'

const Names = Type.Optional(
  Type.Array(Type.String({ minLength: 1 }), { description: 'Read models; all if absent or empty' }),
)

export const projectionRoutes = [
  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/projections',
    operationId: 'listProjections',
    summary: 'List the read models with their positions and rebuilds',
    description: 'The documents are counted for each request, which takes seconds for millions of them.',
    reply: { kind: 'item', schema: Type.Array(ReadModelStatus) },
    handle: async ({ deps }) => item(await deps.readModels.status()),
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/projections/rebuild',
    operationId: 'rebuildProjections',
    summary: 'Rebuild read models from the log',
    description:
      'New documents are built beside those that are served, and take their place when they contain the same events. ' +
      'Requests never see a gap. A rebuild continues after a restart. With `verify`, all documents are compared first.',
    body: Type.Object(
      {
        names: Names,
        verify: Type.Optional(Type.Boolean({ description: 'Report documents that differ' })),
      },
      { additionalProperties: false },
    ),
    example: { names: ['runs'], verify: true },
    errors: ['not_found'],
    reply: { kind: 'item', status: 202, schema: Type.Array(ReadModelStatus) },
    handle: async ({ deps, body }) => {
      await deps.readModels.rebuild(body.names ?? [], { verify: body.verify ?? false })
      return item(await deps.readModels.status(), 202)
    },
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/projections/cancel',
    operationId: 'cancelRebuilds',
    summary: 'Cancel the rebuilds of read models',
    description:
      'A rebuild that waits or works ends as failed within a second. Its new documents are removed, and the former ones are ' +
      'served. One that already replaces the documents is completed.',
    body: Type.Object({ names: Names }, { additionalProperties: false }),
    example: { names: ['runs'] },
    errors: ['not_found', 'conflict'],
    reply: { kind: 'item', status: 202, schema: Type.Array(ReadModelStatus) },
    handle: async ({ deps, body }) => {
      await deps.readModels.cancelRebuild(body.names ?? [])
      return item(await deps.readModels.status(), 202)
    },
  }),
]
