import Type from 'typebox'
import { sealVariable } from '../../secrets/contextVariables.ts'
import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { type ContextVariableDoc, variableId } from '../../projections/contextVariables.ts'
import type { ApiDeps } from '../deps.ts'
import { type Ask, item, list, none, route } from '../route.ts'
import { ContextVariable, PageQuery } from '../schemas.ts'
import { projectOf, projectPaths } from './projects.ts'

const tag = 'Context variables'
const needs = (action: string) => ({ type: 'context', action, path: projectPaths })

/** Bytes of a value: sealed, it stays within what a fact carries itself. */
const MAX_VALUE_BYTES = 32 << 10

const Content = {
  value: Type.String({ writeOnly: true, description: 'Never returned; at most 32 KiB' }),
  description: Type.Optional(Type.String({ maxLength: 1024 })),
}
const Creation = Type.Object({
  key: Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$' }),
  ...Content,
})
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
    summary: 'List context variables',
    tag,
    needs: needs('read'),
    query: PageQuery,
    reply: { kind: 'list', schema: ContextVariable },
    handle: async (ask) => {
      const { query, deps } = ask
      await deps.views.settled('contextVariables')
      const { project_id } = projectOf(ask)
      const found = await deps.views.contextVariables.find({
        equal: { project_id },
        sort: 'order',
        descending: true,
        ...query,
      })
      return list(found.items.map(present), found.total, query)
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/context',
    summary: 'Create a context variable',
    description: 'Functions of the project read the value with `context(key)`; nobody else can.',
    tag,
    needs: needs('create'),
    body: Creation,
    example: { key: 'STRIPE_KEY', value: 'sk_live_…', description: 'From the Stripe dashboard' },
    errors: ['context_exists'],
    reply: { kind: 'item', status: 201, schema: ContextVariable },
    handle: async (ask) => {
      const { key, value, description = '' } = ask.body
      const { place, stream, cause } = await placeOf(ask)
      const sealed = await seal(ask.deps, place, key, value)
      const { project_id } = place
      await ask.deps.aggregates.contexts.handle(
        stream,
        {
          type: 'CreateVariable',
          variable_id: ask.caller.newId('context variable'),
          project_id,
          key,
          description,
          sealed,
        },
        cause,
      )
      return item(await stored(ask.deps, project_id, key), 201)
    },
  }),

  route({
    method: 'PUT',
    path: '/v1/projects/:project/context/:key',
    summary: 'Update a context variable',
    description: 'Running functions see the new value when they next ask. Without a description it stays.',
    tag,
    needs: needs('update'),
    body: Change,
    example: { value: 'sk_live_…', description: 'From the Stripe dashboard' },
    reply: { kind: 'item', schema: ContextVariable },
    handle: async (ask) => {
      const { key } = ask.params
      const { value, description } = ask.body
      const { place, stream, cause } = await placeOf(ask)
      const sealed = await seal(ask.deps, place, key, value)
      const { project_id } = place
      await ask.deps.aggregates.contexts.handle(
        stream,
        {
          type: 'UpdateVariable',
          project_id,
          key,
          sealed,
          ...(description !== undefined && { description }),
        },
        cause,
      )
      return item(await stored(ask.deps, project_id, key))
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/projects/:project/context/:key',
    summary: 'Delete a context variable',
    tag,
    needs: needs('delete'),
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { place, stream, cause } = await placeOf(ask)
      await ask.deps.aggregates.contexts.handle(
        stream,
        { type: 'DeleteVariable', project_id: place.project_id, key: ask.params.key },
        cause,
      )
      return none
    },
  }),
]

/** Where the variables of the request's project stand, and what the facts about them say of the request. */
const placeOf = async (
  ask: Pick<Ask<{ project: string }>, 'params' | 'credential' | 'deps' | 'request_id'>,
) => {
  await ask.deps.views.settled('contextVariables')
  const { project_id, env_id } = projectOf(ask)
  return {
    place: { project_id, env_id },
    stream: streamOf.context(project_id),
    cause: { env_id, correlation_id: ask.request_id, actor: ask.credential.id },
  }
}

const seal = (
  { keyring }: ApiDeps,
  place: { env_id: string; project_id: string },
  key: string,
  value: string,
): Promise<string> => {
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_VALUE_BYTES)
    throw new AppError('bad_request', `value: expected at most ${MAX_VALUE_BYTES} bytes, got ${bytes}`)
  return sealVariable(keyring, place, key, value)
}

const stored = async ({ views }: ApiDeps, project_id: string, key: string) => {
  await views.settled('contextVariables')
  const doc = await views.contextVariables.get(variableId(project_id, key))
  if (!doc) throw new AppError('not_found', `No context variable "${key}"`)
  return present(doc)
}
