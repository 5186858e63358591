import Type from 'typebox'
import { clock } from '../../clock.ts'
import { recordedOf } from '../../domain/recorded.ts'
import { AppError } from '../../errors.ts'
import type { RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import { isDerived, isId } from '../../ids.ts'
import type { Claimer } from '../../worker/worker.ts'
import { CALL, CANCEL, REPLAY } from '../../commands/dispatch.ts'
import { presentEvent } from '../present/event.ts'
import { presentRun } from '../present/run.ts'
import { type Ask, item, list, route } from '../route.ts'
import { Event, pageQuery, PageQuery, Run } from '../schemas.ts'

const tag = 'Events'

/** Both spellings of the publish body are accepted (DESIGN.md, Where SPEC.md is silent). */
export const PublishBody = Type.Object(
  {
    event_type: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    type: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: 'Another name for `event_type`' }),
    ),
    event_data: Type.Optional(Type.Unknown()),
    data: Type.Optional(Type.Unknown({ description: 'Another name for `event_data`' })),
    stream_id: Type.Optional(
      Type.String({
        description: 'Continues this stream; a new one is made when omitted',
        documented: { format: 'uuid' },
      }),
    ),
  },
  { documented: { anyOf: [{ required: ['event_type'] }, { required: ['type'] }] } },
)
type PublishBody = Type.Static<typeof PublishBody>

const typeOf = (body: PublishBody): string | undefined => body.event_type ?? body.type

export const mayPublish = {
  type: 'event',
  action: 'create',
  path: (_: unknown, { body }: Pick<Ask, 'body'>) => [typeOf(body as PublishBody) ?? ''],
}

interface Published {
  readonly event: {
    event_id: string
    env_id: string
    stream_id: string
    event_type: string
    event_data: unknown
    event_time: string
    created_at: string
  }
  /** Revision of the event in its stream. */
  readonly revision: number
}

/** Stores an event; durable when it resolves (I1). */
export const publish = async ({
  body,
  credential,
  deps,
  request_id,
  newId,
}: Pick<
  Ask<unknown, unknown, PublishBody>,
  'body' | 'credential' | 'deps' | 'request_id' | 'newId'
>): Promise<Published> => {
  const event_type = typeOf(body)
  if (event_type === undefined) throw new AppError('bad_request', 'event_type: is required')
  const { env_id } = credential
  const event_data = (body.event_data !== undefined ? body.event_data : body.data) ?? null
  if (event_type.startsWith('svc:')) await checkControl(event_type, event_data, env_id, deps)
  if (body.stream_id !== undefined && !isId(body.stream_id))
    throw new AppError('bad_request', 'stream_id: expected a UUID')
  if (event_type !== CANCEL) await deps.quotas.checkCall(env_id)
  const stream_id = body.stream_id ?? newId('stream')
  const event_id = newId('event')
  const now = clock.iso()
  const fresh = body.stream_id === undefined
  const { claimer } = deps
  const claim = fresh ? await claimOf(claimer, { event_id, stream_id, event_type }, env_id) : null
  const cause = { env_id, correlation_id: request_id, actor: credential.id }
  const stream = streamOf.stream(stream_id)
  const command = {
    type: 'PublishEvent',
    stream_id,
    env_id,
    event_id,
    event_type,
    data: await deps.payloads.keep(event_data),
    source: 'api',
    create: fresh,
    ...(claim && { claim }),
    now,
  } as const
  const append = () =>
    deps.aggregates.streams.handle(stream, command, cause, { fresh: fresh && !isDerived(event_id) })
  const handled = await (claim && claimer ? claimer.claiming(event_id, append) : append())
  if (handled.events.length === 0) return published(deps, stream, { event_id, env_id, event_data })
  const carrier = recordedOf(handled, 'EventPublished', { stream, at: now, metadata: cause })
  if (claim) claimer?.execute(claim.plans, carrier, claim.worker_id)
  return {
    event: { event_id, env_id, stream_id, event_type, event_data, event_time: now, created_at: now },
    revision: carrier.revision,
  }
}

/** The event as it was published before, under the same `Idempotency-Key`, by a node that died. */
const published = async (
  { store }: Ask['deps'],
  stream: string,
  { event_id, env_id, event_data }: { event_id: string; env_id: string; event_data: unknown },
): Promise<Published> => {
  for await (const { event, revision } of store.read(stream)) {
    if (event.type !== 'EventPublished' || event.event_id !== event_id) continue
    const { stream_id, event_type, event_time } = event
    return {
      event: { event_id, env_id, stream_id, event_type, event_data, event_time, created_at: event_time },
      revision,
    }
  }
  throw new AppError('internal_server_error', `Expected event ${event_id} in ${stream}`)
}

/** In a stream made for it an event stands second; a worker at hand then claims its runs in the same append. */
const claimOf = async (
  claimer: Claimer | null,
  event: { event_id: string; stream_id: string; event_type: string },
  env_id: string,
): Promise<{ plans: readonly RunPlan[]; worker_id: string } | null> => {
  if (!claimer || event.event_type.startsWith('svc:')) return null
  const plans = await claimer.plansFor(event, { env_id, revision: 1 })
  return plans && { plans, worker_id: claimer.worker_id }
}

/** Control events are checked before they are stored: a call of nothing would be accepted and never happen. */
const checkControl = async (
  event_type: string,
  data: unknown,
  env_id: string,
  { views }: Ask['deps'],
): Promise<void> => {
  const fields = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
  if (event_type === CALL) {
    const { fn, args, project } = fields
    if (typeof fn !== 'string')
      throw new AppError('bad_request', 'event_data.fn: expected a function reference "ns/var"')
    if (args !== undefined && !Array.isArray(args))
      throw new AppError('bad_request', 'event_data.args: expected an array')
    if (project !== undefined && (typeof project !== 'string' || !views.directory.project(env_id, project))) {
      throw new AppError('bad_request', 'event_data.project: expected the id or name of a project')
    }
    await views.settled('builds')
    const project_id =
      typeof project === 'string' ? views.directory.project(env_id, project)?.project_id : undefined
    if (!views.directory.functionAt(env_id, fn, project_id)) {
      throw new AppError(
        'bad_request',
        `event_data.fn: no function "${fn.slice(0, 200)}" in the deployed builds`,
      )
    }
  } else if (event_type === CANCEL || event_type === REPLAY) {
    const { run_id } = fields
    if (typeof run_id !== 'string' || !isId(run_id))
      throw new AppError('bad_request', 'event_data.run_id: expected a UUID')
    await views.settled('runs')
    const run = await views.runs.get(run_id)
    if (run?.env_id !== env_id) throw new AppError('not_found', `No run ${run_id}`)
    if (event_type === REPLAY && (!run.fn || !run.input_at)) {
      throw new AppError('bad_request', 'event_data.run_id: evaluated code cannot be replayed')
    }
  } else {
    throw new AppError(
      'bad_request',
      `event_type: "svc:" is ours; expected ${CALL}, ${CANCEL}, ${REPLAY} or a name of your own`,
    )
  }
}

const eventOf = async ({ params, credential, deps }: Ask<{ event_id: string }>) => {
  await deps.views.settled('events')
  const doc = await deps.views.events.get(params.event_id)
  if (doc?.env_id !== credential.env_id) throw new AppError('not_found', `No event ${params.event_id}`)
  return doc
}

export const eventRoutes = [
  route({
    method: 'POST',
    path: '/v1/events',
    summary: 'Publish an event',
    description:
      'Each matching handler of the deployed builds runs once. `svc:call`, `svc:cancel` and `svc:replay` steer runs.',
    tag,
    needs: mayPublish,
    body: PublishBody,
    example: { event_type: 'hello:said', event_data: { name: 'Ada' } },
    errors: ['not_found', 'quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: Event },
    handle: async (ask) => item((await publish(ask)).event, 201),
  }),

  route({
    method: 'GET',
    path: '/v1/events',
    summary: 'List events',
    tag,
    needs: { type: 'event', action: 'read' },
    query: pageQuery({ event_type: Type.Optional(Type.String({ minLength: 1 })) }),
    reply: { kind: 'list', schema: Event },
    handle: async ({
      query: { limit, offset, event_type },
      credential: { env_id },
      deps: { views, payloads },
    }) => {
      await views.settled('events')
      const equal = { env_id, ...(event_type !== undefined && { event_type }) }
      const { items, total } = await views.events.find({
        equal,
        sort: 'order',
        descending: true,
        limit,
        offset,
      })
      return list(await Promise.all(items.map((doc) => presentEvent(doc, payloads))), total, {
        limit,
        offset,
      })
    },
  }),

  route({
    method: 'GET',
    path: '/v1/events/:event_id',
    summary: 'Get an event',
    tag,
    needs: { type: 'event', action: 'read' },
    reply: { kind: 'item', schema: Event },
    handle: async (ask) => item(await presentEvent(await eventOf(ask), ask.deps.payloads)),
  }),

  route({
    method: 'GET',
    path: '/v1/events/:event_id/runs',
    summary: 'List the runs an event triggered',
    tag,
    needs: { type: 'run', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Run },
    handle: async (ask) => {
      const { views, payloads } = ask.deps
      const { event_id } = await eventOf(ask)
      await views.settled('runs')
      const { items, total } = await views.runs.find({
        equal: { event_id },
        sort: 'order',
        descending: true,
        ...ask.query,
      })
      return list(await Promise.all(items.map((doc) => presentRun(doc, payloads))), total, ask.query)
    },
  }),
]
