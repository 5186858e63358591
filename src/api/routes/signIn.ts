import type { Context } from 'koa'
import Type from 'typebox'
import type { Credential } from '../../access/credential.ts'
import { commonOf } from '../../access/permissions.ts'
import { credentialNow } from '../../access/storedCredential.ts'
import { parseToken } from '../../access/tokens.ts'
import { isoOf } from '../../clock.ts'
import { issueTicket } from '../../commands/credentials/issueTicket.ts'
import { revokeSession } from '../../commands/credentials/revokeSession.ts'
import { signIn } from '../../commands/credentials/signIn.ts'
import { signOut } from '../../commands/credentials/signOut.ts'
import { sessionOfTicket } from '../../commands/credentials/ticket.ts'
import { AppError, isAppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { ApiDeps } from '../deps.ts'
import { authenticated } from '../http/authenticated.ts'
import {
  clearCookie,
  demandDashboard,
  FROM_PAGES,
  MAX_TOKEN_BYTES,
  SESSION,
  sessionCookie,
  setCookie,
} from '../http/cookies.ts'
import { credentialCause } from '../http/serveRoute.ts'
import { item, none, publicRoute, route } from '../route.ts'
import { SignIn, SignInTicket } from '../schemas.ts'

const tag = 'Dashboard'

const present = async (
  { kind, id, env_id, granted, expires, permissions }: Credential,
  deps: Pick<ApiDeps, 'views'>,
) => {
  const env = permissions.allows('env', 'read') ? await envOf(env_id, deps) : null
  return {
    session_id: kind === 'session' ? id : null,
    env_id,
    env_name: env?.name ?? null,
    org_id: env?.org_id ?? null,
    permissions: granted.reduce(commonOf),
    expires_at: expires === Infinity ? null : isoOf(expires),
  }
}

const envOf = async (env_id: string, { views }: Pick<ApiDeps, 'views'>) => {
  await views.settled('envs')
  const env = await views.envs.get(env_id)
  if (!env) throw new AppError('not_found', 'No such environment')
  return env
}

/** Resolves with the credential of a token in the body. Rejects with `unauthorized`, which counts as a guess. */
const proved = async (ctx: Context, deps: ApiDeps, field: string, token: string | undefined) => {
  try {
    const credential = await authenticated(ctx, deps, token ?? '')
    await deps.orgRates.take(ctx, credential.env_id)
    return credential
  } catch (error) {
    if (isAppError(error, 'unauthorized')) throw wrong(field)
    throw error
  }
}

const wrong = (field: string): AppError =>
  new AppError(
    'unauthorized',
    field === 'ticket'
      ? 'ticket: expected one that is not used or older than a minute; repeat svc open'
      : 'token: expected a valid API key or the token of a valid session',
  )

/** Ends a ticket, which only one request can do. Resolves with the API key that requested it. */
const redeemed = async (ctx: Context, deps: ApiDeps, ticket: string): Promise<Credential> => {
  const given = await proved(ctx, deps, 'ticket', sessionOfTicket(deps.keyring, ticket))
  const { api_key_id, id: session_id } = given
  try {
    await revokeSession(deps, { api_key_id, session_id }, credentialCause(ctx, given, deps))
  } catch (error) {
    if (isAppError(error, 'not_found')) throw wrong('ticket') // another request was faster
    throw error
  }
  const issuer = await credentialNow(deps.views, { kind: 'api-key', id: api_key_id })
  if (!issuer) throw wrong('ticket')
  return issuer
}

/** The credential that signs in: a session, or the API key to issue one for. */
const givenBy = async (
  ctx: Context,
  deps: ApiDeps,
  { token, ticket }: { readonly token?: string; readonly ticket?: string },
): Promise<Credential> => {
  if ((token === undefined) === (ticket === undefined))
    throw new AppError('bad_request', 'token: expected either a token or a ticket')
  if (ticket !== undefined) return redeemed(ctx, deps, ticket)
  if (parseToken(token ?? '')?.kind !== 'service-key') return proved(ctx, deps, 'token', token)
  throw new AppError(
    'bad_request',
    'token: expected an API key (svc_…) or the token of a session (s_…), got a service key',
  )
}

/**
 * Ends the session that the cookie of the same browser names, unless it is the one that signs in: nobody could end it
 * afterwards. A cookie whose session has ended is no guess.
 */
const endReplaced = async (ctx: Context, deps: ApiDeps, { id }: Pick<Credential, 'id'>): Promise<void> => {
  const replaced = await deps.authenticator.authenticate(sessionCookie(ctx)).catch((error: unknown) => {
    if (!isAppError(error, 'unauthorized')) throw error
  })
  if (replaced && replaced.id !== id) await signOut(deps, replaced, credentialCause(ctx, replaced, deps))
}

export const signInRoutes = [
  publicRoute({
    method: 'POST',
    path: '/v1/sign-in',
    operationId: 'signIn',
    summary: 'Sign in to the dashboard',
    description:
      `Sets the cookie of the dashboard. For an API key or a ticket, it creates a session of 12 hours with the permissions ` +
      `of the API key; a session is used until its end. The session that the former cookie names is revoked if a sign-in ` +
      `created it. ${FROM_PAGES}`,
    tag,
    maxBodyBytes: MAX_TOKEN_BYTES,
    body: Type.Object({
      token: Type.Optional(Type.String({ description: 'An API key, or the token of a session' })),
      ticket: Type.Optional(Type.String({ description: 'A ticket, which is valid once' })),
    }),
    example: { token: 'svc_01a1faf6-082e-7004-be21-1748e5bd2d51_…' },
    errors: [
      'unauthorized',
      'forbidden',
      'conflict',
      'rate_limit_exceeded',
      'session_limit_exceeded',
      'unavailable',
    ],
    reply: { kind: 'item', schema: SignIn },
    handle: async ({ ctx, deps, body }) => {
      demandDashboard(ctx)
      const given = await givenBy(ctx, deps, body)
      const cause = credentialCause(ctx, given, deps)
      const value = given.kind === 'api-key' ? await signIn(deps, given, { cause, newId }) : body.token
      const session = await deps.authenticator.authenticate(value)
      await endReplaced(ctx, deps, session)
      setCookie(ctx, SESSION, { value: value ?? '', expires: session.expires }, deps)
      return item(await present(session, deps))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/sign-in',
    operationId: 'getSignIn',
    summary: 'Get the environment and the permissions of the credential',
    description:
      'Any credential may read this, without the name and the organization if it lacks `read` on `env`. In the dashboard, ' +
      'the credential is the cookie.',
    tag,
    needs: [],
    reply: { kind: 'item', schema: SignIn },
    handle: async ({ credential, deps }) => item(await present(credential, deps)),
  }),

  publicRoute({
    method: 'DELETE',
    path: '/v1/sign-in',
    operationId: 'signOut',
    summary: 'Sign out of the dashboard',
    description: `Removes the cookie, and revokes its session if a sign-in created it. ${FROM_PAGES}`,
    tag,
    errors: ['forbidden', 'conflict', 'rate_limit_exceeded', 'unavailable'],
    reply: { kind: 'none' },
    handle: async ({ ctx, deps }) => {
      demandDashboard(ctx)
      const session = await authenticated(ctx, deps, sessionCookie(ctx) ?? '').catch((error: unknown) => {
        if (!isAppError(error, 'unauthorized')) throw error
      })
      if (session) await signOut(deps, session, credentialCause(ctx, session, deps))
      clearCookie(ctx, SESSION, deps) // the browser keeps it if this fails, so that the sign-out can be repeated
      return none
    },
  }),

  route({
    method: 'POST',
    path: '/v1/sign-in/tickets',
    operationId: 'createSignInTicket',
    summary: 'Create a ticket that signs a browser in',
    description:
      'Requires an API key. The ticket is valid for one sign-in within 60 seconds, so it can be part of a URL: ' +
      '`/ui#ticket=…`.',
    tag,
    needs: [],
    errors: ['session_limit_exceeded'],
    reply: { kind: 'item', status: 201, schema: SignInTicket },
    handle: async ({ credential, deps, caller }) => item(await issueTicket(deps, credential, caller), 201),
  }),
]
