import type { Context } from 'koa'
import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import type { ApiDeps } from './deps.ts'
import type { Credential } from '../access/credential.ts'
import type { Caller } from '../commands/deps.ts'
import type { NewId } from '../ids.ts'
import { type Check, checkBody, checkQuery } from './http/validate.ts'

/** What the caller needs: an action on a type, and on which path of it (DESIGN.md, Permissions per endpoint). */
export interface Needs<P = Record<string, string>> {
  readonly type: string
  readonly action: string
  /** An action that will do as well: the handler tells which of the two it was. */
  readonly or?: string
  /** The path part, when the endpoint is about one thing; several when it has an id and a name. */
  readonly path?: (
    params: P,
    request: Pick<Ask, 'credential' | 'deps' | 'body'>,
  ) => readonly string[] | undefined | Promise<readonly string[]>
}

/** A request as its handler sees it: checked, typed, and from somebody who may. */
export interface Ask<P = Record<string, string>, Q = unknown, B = unknown> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly credential: Credential
  readonly deps: ApiDeps
  readonly request_id: string
  /** On whose behalf the commands of this request run. */
  readonly caller: Caller
  /**
   * Does the work once for the request's `Idempotency-Key`, if it has one; `request`: what must be the same then. Only
   * for handlers that read the body themselves or take the reply over: `serve` does it for the others.
   */
  readonly once: <T>(request: unknown, work: (newId: NewId) => Promise<T>) => Promise<T>
  /** For a reply that stays open: ends it when the credential does, or no longer allows the request. */
  readonly hold: (reply: { readonly gone: AbortSignal; readonly end: () => void }) => void
  readonly ctx: Context
}

/** How a reply looks on the wire (SPEC.md, Response envelope). */
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
  /** The handler has set or taken over the reply itself: a download, a stream. */
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

/** What the OpenAPI document says of a reply; `schema` is that of `data`, or of one item of a list. */
export interface ReplyShape {
  readonly kind: 'item' | 'list' | 'none' | 'stream' | 'bytes' | 'bare'
  readonly status?: number
  readonly schema?: TSchema
  readonly description?: string
  /** Media type of `bytes` and `bare`; default JSON for `bare`, any for `bytes`. */
  readonly type?: string
  /** Of a `stream`: the data of each server-sent event, by its name. */
  readonly events?: Readonly<Record<string, TSchema>>
  /** Another success with the same body, and the headers that tell it from the first. */
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
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** Null: anybody may. */
  readonly needs: Needs<P> | readonly Needs<P>[] | null
  /** Only with the operator token; `needs` is null. */
  readonly operator?: true
  readonly query?: Q
  /** The query string is the caller's own: any parameter goes. */
  readonly anyQuery?: true
  readonly body?: B
  /** Bytes a JSON body may have; default 1 MiB. */
  readonly maxBodyBytes?: number
  /** The body is not JSON: the handler reads it. */
  readonly rawBody?: string
  /** A client that asks before it sends its body (`Expect: 100-continue`) hears from the handler that it may. */
  readonly holdsBody?: true
  /** The fields of a multipart body, for the OpenAPI document: the handler reads and checks it. */
  readonly form?: TObject
  /** A body that helps a reader of the OpenAPI document. */
  readonly example?: Static<B>
  /** Refusals of its own, for the OpenAPI document, beside those that follow from the rest of the route. */
  readonly errors?: readonly ErrorCode[]
  readonly reply: ReplyShape
  readonly handle: (ask: Ask<P, Static<Q>, Static<B>>) => Promise<Reply> | Reply
}

/** A route with its checks compiled, its input types forgotten. */
export interface Route extends Omit<RouteSpec<Record<string, string>, TObject, TSchema>, 'needs' | 'handle'> {
  readonly needs: readonly Needs[] | null
  /** The reply holds a secret that is told this once: another credential must not get it by the same `Idempotency-Key`. */
  readonly tellsSecret: boolean
  /** An `Idempotency-Key` has a meaning here. */
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

/** One endpoint: the table of these is the API, its OpenAPI document and its checks. */
export const route = <Path extends string, Q extends TObject, B extends TSchema>(
  spec: RouteSpec<ParamsOf<Path>, Q, B> & { readonly path: Path },
): Route => {
  const { needs, handle, ...rest } = spec
  return {
    ...rest,
    needs: needs && ((Array.isArray(needs) ? needs : [needs]) as readonly Needs[]),
    handle: handle as unknown as Route['handle'],
    takesKey: spec.method === 'POST' && (needs !== null || spec.operator === true),
    tellsSecret: 'token' in ((spec.reply.schema as TObject | undefined)?.properties ?? {}),
    checkQuery: spec.anyQuery ? (query) => query : checkQuery(spec.query ?? NO_QUERY),
    checkBody: spec.body && checkBody(spec.body),
  }
}
