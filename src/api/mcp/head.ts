import type { Context } from 'koa'
import { AppError } from '../../errors.ts'
import { isId } from '../../ids.ts'
import { isAllowedOrigin } from '../../ports/corsOrigins.ts'
import type { ApiDeps } from '../deps.ts'

/** Versions of the protocol, the newest first. The others differ in parts that the service does not use. */
export const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

export const SESSION_HEADER = 'Mcp-Session-Id'
const VERSION_HEADER = 'Mcp-Protocol-Version'

/** Returns the version of the protocol for a client that asked for one. */
export const versionFor = (asked: unknown): string =>
  VERSIONS.find((version) => version === asked) ?? VERSIONS[0]

/**
 * Checks the headers of a request and returns its session; undefined without one. Throws `forbidden` for a page of an
 * unknown origin, and `bad_request` for anything that would be ignored.
 */
export const checkHead = (
  ctx: Context,
  { corsOrigins, publicUrl }: Pick<ApiDeps, 'corsOrigins' | 'publicUrl'>,
): string | undefined => {
  const { origin } = ctx.headers
  // Not compared with `Host`: a page whose name was bound again to this address has both of its own name.
  const isKnown =
    origin === undefined ||
    origin === new URL(publicUrl()).origin ||
    (corsOrigins !== null && isAllowedOrigin(corsOrigins, origin))
  if (!isKnown)
    throw new AppError(
      'forbidden',
      `Origin: expected none, or one that SVC_CORS_ORIGINS names, got ${JSON.stringify(origin.slice(0, 80))}`,
    )
  if (ctx.headers['idempotency-key'] !== undefined)
    throw new AppError(
      'bad_request',
      `Idempotency-Key: expected none; a call is identified by ${SESSION_HEADER} and the id of its request`,
    )
  const version = ctx.get(VERSION_HEADER)
  if (version !== '' && !VERSIONS.some((known) => known === version))
    throw new AppError(
      'bad_request',
      `${VERSION_HEADER}: expected one of ${VERSIONS.join(', ')}, got ${JSON.stringify(version.slice(0, 80))}`,
    )
  const session = ctx.get(SESSION_HEADER)
  if (session === '') return undefined
  if (isId(session)) return session
  throw new AppError(
    'bad_request',
    `${SESSION_HEADER}: expected the header of the reply to initialize, got ${JSON.stringify(session.slice(0, 80))}`,
  )
}
