import type { Context } from 'koa'
import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import type { ApiDeps } from './deps.ts'
import type { Credential } from '../access/credential.ts'
import type { Caller } from '../commands/deps.ts'
import type { NewId } from '../ids.ts'
import { type Check, checkBody, checkQuery } from './http/validate.ts'

/** The permission that a route requires: an action on a type and path (DESIGN.md, Permissions per endpoint). */
export interface Needs<P = Record<string, string>> {
  readonly type: string
  readonly action: string
  /** A second action that also suffices. The handler checks which of the two the request needs. */
  readonly or?: string
  /** The path part for a single resource; several if the resource has an id and a name. */
  readonly path?: (
    params: P,
    request: Pick<Ask, 'credential' | 'deps' | 'body'>,
  ) => readonly string[] | undefined | Promise<readonly string[]>
}

/** A request that is validated, typed and authorized. */
export interface Ask<P = Record<string, string>, Q = unknown, B = unknown> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly credential: Credential
  readonly deps: ApiDeps
  readonly request_id: string
  /** The caller for the commands of this request. */
  readonly caller: Caller
  /**
   * Does the work once for the request's `Idempotency-Key`, if there is one; repeats must have an equal `request`.
   * Only for handlers that read the body or write the reply themselves: `serve` does it for the others.
   */
  readonly once: <T>(request: unknown, work: (newId: NewId) => Promise<T>) => Promise<T>
  /** Ends an open reply when the credential ends or no longer permits the request. */
  readonly hold: (reply: { readonly gone: AbortSignal; readonly end: () => void }) => void
  readonly ctx: Context
}

/** The reply of a handler (SPEC.md, Response envelope). */
export type Reply =
  | {
      readonly kind: 'item'
      readonly status: number
      readonly data: unknown
      readonly headers?: Record<string, string>
    }
  | {
      readonly kind: 'list'
      readonly items: readonly unknown[]
      readonly total: number
      readonly limit: number
      readonly offset: number
    }
  | { readonly kind: 'none' }
  /** The handler has written the reply itself, such as a download or a stream. */
  | { readonly kind: 'own' }

export const item = (data: unknown, status = 200, headers: Record<string, string> = {}): Reply => ({
  kind: 'item',
  status,
  data,
  headers,
})
export const list = (
  items: readonly unknown[],
  total: number,
  { limit, offset }: { limit: number; offset: number },
): Reply => ({
  kind: 'list',
  items,
  total,
  limit,
  offset,
})
export const none: Reply = { kind: 'none' }
export const own: Reply = { kind: 'own' }

/** The reply in the OpenAPI document; `schema` is that of `data`, or of one item of a list. */
export interface ReplyShape {
  readonly kind: 'item' | 'list' | 'none' | 'stream' | 'bytes' | 'bare'
  readonly status?: number
  readonly schema?: TSchema
  readonly description?: string
  /** Media type of `bytes` and `bare`; default JSON for `bare`, any for `bytes`. */
  readonly type?: string
  /** The data of each server-sent event of a `stream`, by name. */
  readonly events?: Readonly<Record<string, TSchema>>
  /** Another success with the same body, and the headers that distinguish it. */
  readonly also?: {
    readonly status: number
    readonly description: string
    readonly headers: Readonly<Record<string, string>>
  }
}

interface RouteSpec<P, Q extends TObject, B extends TSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** In @koa/router's syntax, from the server's root. */
  readonly path: string
  /** The operation's name in the OpenAPI document. Clients are generated from it, so it never changes. */
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** Null for a public route. */
  readonly needs: Needs<P> | readonly Needs<P>[] | null
  /** Requires the operator token; `needs` is null. */
  readonly operator?: true
  readonly query?: Q
  /** The query string is for the user's function: any parameter is accepted. */
  readonly anyQuery?: true
  readonly body?: B
  /** The limit of a JSON body in bytes; default `DEFAULT_MAX_BODY`. */
  readonly maxBodyBytes?: number
  /** The media type of a body that is not JSON. The handler reads it. */
  readonly rawBody?: string
  /** The handler, not `serve`, sends `100 Continue` to a client that waits for it. */
  readonly sendsContinue?: true
  /** The fields of a multipart body in the OpenAPI document. The handler reads and checks it. */
  readonly form?: TObject
  /** An example of the body in the OpenAPI document. */
  readonly example?: Static<B>
  /** Error codes in the OpenAPI document, in addition to those that follow from the rest of the route. */
  readonly errors?: readonly ErrorCode[]
  readonly reply: ReplyShape
  readonly handle: (ask: Ask<P, Static<Q>, Static<B>>) => Promise<Reply> | Reply
}

/** A route with compiled checks and without its input types. */
export interface Route extends Omit<RouteSpec<Record<string, string>, TObject, TSchema>, 'needs' | 'handle'> {
  readonly needs: readonly Needs[] | null
  /** The reply contains a secret. Another credential must not get it with the same `Idempotency-Key`. */
  readonly revealsSecret: boolean
  /** The route supports an `Idempotency-Key`. */
  readonly takesKey: boolean
  readonly checkQuery: Check<unknown>
  readonly checkBody: Check<unknown> | undefined
  readonly handle: (ask: Ask<Record<string, string>, unknown, unknown>) => Promise<Reply> | Reply
}

type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [K in Name]: string } & ParamsOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? { readonly [K in Name]: string }
    : Path extends `${string}*${infer Name}`
      ? { readonly [K in Name]: string }
      : unknown

const NO_QUERY = { type: 'object', properties: {} } as unknown as TObject

/** Declares an endpoint. The router, the checks and the OpenAPI document are derived from these declarations. */
export const route = <Path extends string, Q extends TObject, B extends TSchema>(
  spec: RouteSpec<ParamsOf<Path>, Q, B> & { readonly path: Path },
): Route => {
  const { needs, handle, ...rest } = spec
  return {
    ...rest,
    needs: needs && ((Array.isArray(needs) ? needs : [needs]) as readonly Needs[]),
    handle: handle as unknown as Route['handle'],
    takesKey: spec.method === 'POST' && (needs !== null || spec.operator === true),
    revealsSecret: 'token' in ((spec.reply.schema as TObject | undefined)?.properties ?? {}),
    checkQuery: spec.anyQuery ? (query) => query : checkQuery(spec.query ?? NO_QUERY),
    checkBody: spec.body && checkBody(spec.body),
  }
}
