import Type from 'typebox'
import { createVariable } from '../../commands/context/createVariable.ts'
import { deleteVariable } from '../../commands/context/deleteVariable.ts'
import { updateVariable } from '../../commands/context/updateVariable.ts'
import { AppError } from '../../errors.ts'
import { CONTEXT_KEY_PATTERN } from '../../events/contextKey.ts'
import { type ContextVariableDoc, variableId } from '../../projections/contextVariables.ts'
import { type Ask, item, none, route } from '../route.ts'
import { AsOfPageQuery, listPast, pastProjectOf } from '../asOf.ts'
import { listOf } from '../paging.ts'
import { ContextVariable } from '../schemas.ts'
import { byProject, projectOf } from './projects.ts'

const tag = 'Context variables'
const needs = (action: string) => ({ type: 'context', action, ...byProject })

const Content = {
  value: Type.String({ writeOnly: true, description: 'Never returned; at most 32 KiB' }),
  description: Type.Optional(Type.String({ maxLength: 1024 })),
}
const Creation = Type.Object({ key: Type.String({ pattern: CONTEXT_KEY_PATTERN }), ...Content })
const Change = Type.Object(Content)

const present = ({ key, description, created_at, updated_at }: ContextVariableDoc) => ({
  key,
  description,
  created_at,
  updated_at,
})

export const contextRoutes = [
  route({
    method: 'GET',
    path: '/v1/projects/:project/context',
    operationId: 'listContextVariables',
    summary: 'List context variables',
    tag,
    needs: needs('read'),
    query: AsOfPageQuery,
    reply: { kind: 'list', schema: ContextVariable },
    handle: async (ask) => {
      const {
        query: { as_of, ...page },
        deps,
      } = ask
      if (as_of !== undefined) {
        const { past, project } = await pastProjectOf(ask, as_of, 'context')
        return listPast(await past.variables(project.project_id), page, present)
      }
      await deps.views.settled('contextVariables')
      const { project_id } = projectOf(ask)
      return listOf(deps.views, 'contextVariables', { equal: { project_id }, ...page }, present)
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/context',
    operationId: 'createContextVariable',
    summary: 'Create a context variable',
    description:
      'Only functions of the project can read the value, with `context(key)`. A function can limit itself to some keys by `context` in its metadata.',
    tag,
    needs: needs('create'),
    body: Creation,
    example: { key: 'STRIPE_KEY', value: 'sk_live_…', description: 'From the Stripe dashboard' },
    errors: ['context_exists', 'quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: ContextVariable },
    handle: async ({ deps, params: { project }, body, caller }) => {
      const { project_id } = await createVariable(deps, { ...body, project }, caller)
      return item(await stored(deps, project_id, body.key), 201)
    },
  }),

  route({
    method: 'PUT',
    path: '/v1/projects/:project/context/:key',
    operationId: 'updateContextVariable',
    summary: 'Update a context variable',
    description:
      'Running functions see the new value when they next read it. Without `description`, the description remains.',
    tag,
    needs: needs('update'),
    body: Change,
    example: { value: 'sk_live_…', description: 'From the Stripe dashboard' },
    reply: { kind: 'item', schema: ContextVariable },
    handle: async ({ deps, params: { project, key }, body, caller }) => {
      const { project_id } = await updateVariable(deps, { ...body, project, key }, caller.cause)
      return item(await stored(deps, project_id, key))
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/projects/:project/context/:key',
    operationId: 'deleteContextVariable',
    summary: 'Delete a context variable',
    tag,
    needs: needs('delete'),
    reply: { kind: 'none' },
    handle: async ({ deps, params: { project, key }, caller }) => {
      await deleteVariable(deps, { project, key }, caller.cause)
      return none
    },
  }),
]

const stored = async ({ views }: Pick<Ask['deps'], 'views'>, project_id: string, key: string) => {
  await views.settled('contextVariables')
  const doc = await views.contextVariables.get(variableId(project_id, key))
  if (!doc) throw new AppError('not_found', `No context variable "${key}"`)
  return present(doc)
}
