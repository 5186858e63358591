import Type from 'typebox'
import { AppError } from '../../errors.ts'
import type { FrontDeps } from '../deps.ts'
import { errorBody } from '../http/problem.ts'
import { own, type PublicRoute, publicRoute } from '../route.ts'

const Status = Type.Object({
  status: Type.String(),
  service: Type.String(),
  version: Type.String(),
  git_sha: Type.String(),
  start_time: Type.String({ format: 'date-time' }),
})

/** They are served before the API has started and on nodes without it. */
export const healthRoutes: readonly PublicRoute<FrontDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/status',
    operationId: 'getStatus',
    summary: 'Get the version and start time of the server',
    tag: 'Health',
    reply: { kind: 'bare', schema: Status },
    handle: ({ ctx, deps: { about } }) => {
      ctx.body = { status: 'ok', service: 'svc', ...about }
      return own
    },
  }),

  publicRoute({
    method: 'GET',
    path: '/healthz',
    operationId: 'getHealth',
    summary: 'Check that the process is alive',
    tag: 'Health',
    reply: { kind: 'bare' },
    handle: ({ ctx }) => {
      ctx.body = { status: 'ok' }
      return own
    },
  }),

  publicRoute({
    method: 'GET',
    path: '/readyz',
    operationId: 'getReadiness',
    summary: 'Check that the service accepts requests',
    description:
      'Returns 503 while an engine cannot be reached, a read model is being built or the server is stopping, and ' +
      'from the moment when a file of an embedded engine was found damaged until a restart, which repairs it. ' +
      'An engine that has not answered for 5 seconds is named in the message, with the time since when. ' +
      '`sandbox` is the isolation of user code on this node: the tier and the reason for it. ' +
      '`building` lists read models that are being built, with their shares of the log in percent. ' +
      '`outages` lists engines that do not answer at this moment. `oldest_untaken_event_ms` is the age of the oldest ' +
      'event that no worker has taken, on nodes with the role `worker` or `saga`. `skipped_facts` is the number of facts ' +
      'that read models lack because of a defect, and `skipped` names the first ones.',
    tag: 'Health',
    errors: ['unavailable'],
    reply: { kind: 'bare' },
    handle: ({ ctx, deps, request_id }) => {
      const reason = deps.notReady()
      if (reason !== null) {
        const error = new AppError('unavailable', reason)
        ctx.status = error.status
        ctx.set('Retry-After', '1')
        ctx.body = { ...errorBody(error, request_id), ...deps.readyDetails?.() }
        return own
      }
      ctx.body = { status: 'ready', ...(deps.sandbox && { sandbox: deps.sandbox }), ...deps.readyDetails?.() }
      return own
    },
  }),
]
