import Type from 'typebox'
import { isoOf } from '../../clock.ts'
import { AppError, isAppError } from '../../errors.ts'
import { clientIp } from '../http/clientIp.ts'
import {
  clearCookie,
  cookieIn,
  demandDashboard,
  FROM_PAGES,
  MAX_TOKEN_BYTES,
  OPERATOR,
  setCookie,
} from '../http/cookies.ts'
import { operatorCauseOf } from '../http/serveRoute.ts'
import { item, none, publicRoute } from '../route.ts'
import { OperatorSignIn } from '../schemas.ts'

const tag = 'Operator'

export const operatorSignInRoutes = [
  publicRoute({
    method: 'POST',
    path: '/operator/sign-in',
    operationId: 'signInOperator',
    summary: 'Sign in to the dashboard as the operator',
    description: `Sets a cookie that admits for 12 hours, and ends with the operator token. The former cookie admits no more. ${FROM_PAGES}`,
    tag,
    maxBodyBytes: MAX_TOKEN_BYTES,
    body: Type.Object({ token: Type.String({ description: 'The operator token' }) }),
    example: { token: 'the operator token' },
    errors: ['unauthorized', 'forbidden', 'conflict', 'rate_limit_exceeded', 'unavailable'],
    reply: { kind: 'item', schema: OperatorSignIn },
    handle: async ({ ctx, deps, body: { token }, request_id }) => {
      demandDashboard(ctx)
      try {
        deps.operator.admit(`Bearer ${token}`, { ip: clientIp(ctx.req, deps), request_id })
      } catch (error) {
        if (!isAppError(error, 'unauthorized')) throw error
        throw new AppError('unauthorized', 'token: expected the operator token of the installation')
      }
      await deps.operator.endSession(cookieIn(ctx, OPERATOR), operatorCauseOf(ctx, deps))
      const session = deps.operator.newSession(token)
      setCookie(ctx, OPERATOR, session, deps)
      return item({ expires_at: isoOf(session.expires) })
    },
  }),

  publicRoute({
    method: 'GET',
    path: '/operator/sign-in',
    operationId: 'getOperatorSignIn',
    summary: 'Get the end of the sign-in of the operator',
    description: FROM_PAGES,
    tag,
    errors: ['unauthorized', 'unavailable'],
    reply: { kind: 'item', schema: OperatorSignIn },
    handle: async ({ ctx, deps }) => {
      const session = await deps.operator.sessionOf(cookieIn(ctx, OPERATOR))
      if (!session) throw new AppError('unauthorized', 'Expected the cookie of a valid sign-in')
      return item({ expires_at: isoOf(session.expires) })
    },
  }),

  publicRoute({
    method: 'DELETE',
    path: '/operator/sign-in',
    operationId: 'signOutOperator',
    summary: 'Sign the operator out of the dashboard',
    description: `Removes the cookie, which no node accepts any more. ${FROM_PAGES}`,
    tag,
    errors: ['forbidden', 'conflict', 'unavailable'],
    reply: { kind: 'none' },
    handle: async ({ ctx, deps }) => {
      demandDashboard(ctx)
      await deps.operator.endSession(cookieIn(ctx, OPERATOR), operatorCauseOf(ctx, deps))
      clearCookie(ctx, OPERATOR, deps) // the browser keeps it if this fails, so that the sign-out can be repeated
      return none
    },
  }),
]
