import Type from 'typebox'
import { publishEvent } from '../../commands/events/publishEvent.ts'
import { callAndWait, type CalledRun } from '../../commands/runs/callAndWait.ts'
import { AppError } from '../../errors.ts'
import { CALL, CANCEL, REPLAY } from '../../events/eventType.ts'
import { payloadOf } from '../../events/payload.ts'
import { isId } from '../../ids.ts'
import { leaving } from '../http/leaving.ts'
import { demandRef } from '../functionRef.ts'
import { type Ask, item, type Reply, route, unfinished } from '../route.ts'
import { CalledFunction, PublishedEvent } from '../schemas.ts'

/** Plain names for the events that control runs: the same permissions, the same effect. */

const mayPublish = (event_type: string) => ({ type: 'event', action: 'create', path: () => [event_type] })

/** Publishes a control event about the run of the path. */
const control =
  (event_type: typeof CANCEL | typeof REPLAY) =>
  async ({ params: { run_id }, deps, caller }: Ask<{ run_id: string }>): Promise<Reply> => {
    if (!isId(run_id)) throw new AppError('not_found', `No run ${run_id}`)
    const { event } = await publishEvent(deps, { event_type, event_data: { run_id }, source: 'api' }, caller)
    return item(event, 201)
  }

/** Calls a function. Its handler does not keep the arguments while it waits. */
const called = (
  {
    params: { project, ref },
    query: { wait },
    body,
    deps,
    caller,
    forget,
  }: Ask<{ project: string; ref: string }, { wait: number }, { args?: unknown[] }>,
  gone: AbortSignal,
): Promise<CalledRun> => {
  demandRef('ref', ref)
  return callAndWait(deps, { project, ref, args: body.args ?? [] }, caller, {
    waitMs: wait * 1000,
    gone,
    onStored: () => forget(body),
  })
}

/** Seconds that a caller may wait: proxies end requests that take longer. */
const LONGEST_WAIT_S = 60

export const runControlRoutes = [
  route({
    method: 'POST',
    path: '/v1/runs/:run_id/replay',
    operationId: 'replayRun',
    summary: 'Run a function again with the same input',
    description:
      'Runs the function of the run on the build that is deployed now. The same as publishing `svc:replay`, whose event it returns; the new run has `replay_of`.',
    tag: 'Runs',
    needs: mayPublish(REPLAY),
    errors: ['not_found', 'quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: PublishedEvent },
    handle: control(REPLAY),
  }),

  route({
    method: 'POST',
    path: '/v1/runs/:run_id/cancel',
    operationId: 'cancelRun',
    summary: 'Cancel a run',
    description:
      'Also cancels a run that waits for a worker or for its retry. If the run has failed, cancels the attempt that follows it. A run that has ended does not change. The same as publishing `svc:cancel`, whose event it returns.',
    tag: 'Runs',
    needs: mayPublish(CANCEL),
    errors: ['not_found'],
    reply: { kind: 'item', status: 201, schema: PublishedEvent },
    handle: control(CANCEL),
  }),

  route({
    method: 'POST',
    path: '/v1/functions/:project/:ref',
    operationId: 'callFunction',
    summary: 'Call a function',
    description:
      'Starts a background run of a deployed function. `ref` is `ns/var`, encoded as `ns%2Fvar`. The same as publishing ' +
      '`svc:call`. With `wait`, replies when the run and its retries have ended, or after so many seconds; the run continues.',
    tag: 'Runs',
    needs: mayPublish(CALL),
    query: Type.Object({
      wait: Type.Integer({
        minimum: 0,
        maximum: LONGEST_WAIT_S,
        default: 0,
        description: 'Seconds to wait for the result',
      }),
    }),
    body: Type.Object({ args: Type.Optional(Type.Array(Type.Unknown(), { description: 'Default: none' })) }),
    example: { args: [1, 2] },
    errors: ['not_found', 'quota_exceeded'],
    reply: {
      kind: 'item',
      schema: CalledFunction,
      description: 'The run has ended',
      also: {
        status: 202,
        description: 'The run has not ended',
        headers: { Location: { description: 'Path of the run', schema: { type: 'string' } } },
      },
    },
    handle: async (ask) => {
      const { deps, ctx, query } = ask
      const gone = leaving(ctx)
      const { ending, ...ids } = await called(ask, gone)
      if (!ending) {
        const isCutShort = query.wait > 0 && (gone.aborted || deps.stopping.aborted)
        const reply = isCutShort ? unfinished : item
        return reply({ ...ids, status: null, result: null }, 202, { Location: `/v1/runs/${ids.run_id}` })
      }
      switch (ending.type) {
        case 'RunSucceeded':
          return item({
            ...ids,
            status: 'succeeded',
            result: deps.payloads.stored(payloadOf('result', ending)),
          })
        case 'RunFailed':
          return item({ ...ids, status: 'failed', result: null, error: ending.error })
        case 'RunCancelled':
        case 'EventHandled':
          return item({ ...ids, status: 'cancelled', result: null })
        default:
          return ending satisfies never
      }
    },
  }),
]
