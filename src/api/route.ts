import type { Context } from 'koa'
import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import type { Cause } from '../events/event.ts'
import type { ApiDeps } from './deps.ts'
import type { Credential } from '../access/credential.ts'
import type { Caller } from '../commands/deps.ts'
import type { NewId } from '../ids.ts'
import { closed } from './http/closed.ts'
import { type Check, checkBody, checkNoBody, checkQuery } from './http/validate.ts'

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
  /** Resolves when `path` knows everything appended so far (I2). A request is refused only after that. */
  readonly settled?: (request: Pick<Ask, 'deps'>) => Promise<void>
}

/** A validated and typed request of any client. */
export interface PublicAsk<P = Record<string, string>, Q = unknown, B = unknown, Deps = ApiDeps> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly deps: Deps
  readonly request_id: string
  readonly ctx: Context
}

/** A request of the operator, who belongs to no environment. */
export interface OperatorAsk<
  P = Record<string, string>,
  Q = unknown,
  B = unknown,
  Deps = ApiDeps,
> extends PublicAsk<P, Q, B, Deps> {
  /** The operator as the caller of commands that need no environment. */
  readonly operator: Caller<Cause>
}

/** An authorized request of a credential, in the environment of the credential. */
export interface Ask<P = Record<string, string>, Q = unknown, B = unknown> extends PublicAsk<P, Q, B> {
  readonly credential: Credential
  /** The caller for the commands of this request. */
  readonly caller: Caller
  /**
   * Does the work once for the request's `Idempotency-Key`, if it has one. A repetition must have an equal `request`.
   * Only handlers that read the body or write the reply use this: `serve` does it for the others.
   */
  readonly once: <T>(request: unknown, work: (newId: NewId) => Promise<T>) => Promise<T>
  /** Ends an open reply when the credential ends or no longer permits the request. */
  readonly hold: (reply: { readonly gone: AbortSignal; readonly end: () => void }) => void
  /**
   * Empties the body, or the part of it that contains its large values, and gives its memory back. A handler that still
   * waits calls this when it needs neither: functions that wait keep the body, so it would remain in memory.
   */
  readonly forget: (part: object) => void
}

/** The reply of a handler (SPEC.md, Response envelope). */
export type Reply =
  | {
      readonly kind: 'item'
      readonly status: number
      readonly data: unknown
      readonly headers?: Record<string, string>
      readonly isUnfinished?: boolean
    }
  | {
      readonly kind: 'list'
      readonly items: readonly unknown[]
      readonly total: number
      readonly limit: number
      readonly offset: number
      /** Where a search ended that has not looked at everything. */
      readonly searched_to?: string
      /** Where the next page of a list of runs, events or files begins. */
      readonly next?: string
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
/** An item about a run that continues. With an `Idempotency-Key` it becomes a 503, and a repetition waits for the end. */
export const unfinished = (data: unknown, status: number, headers: Record<string, string> = {}): Reply => ({
  kind: 'item',
  status,
  data,
  headers,
  isUnfinished: true,
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
  /** Another success with the same body, and the headers that distinguish it, as in the document. */
  readonly also?: {
    readonly status: number
    readonly description: string
    readonly headers: Readonly<Record<string, object>>
  }
  /** The reply has an `ETag`; a request that names it in `If-None-Match` gets a 304. */
  readonly hasEtag?: true
  /** A request with `Range` gets a part of the content. */
  readonly takesRange?: true
}

/** The declaration of an endpoint, apart from its access and its handler. */
interface RouteSpec<Q extends TObject = TObject, B extends TSchema = TSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** In @koa/router's syntax, from the server's root. */
  readonly path: string
  /** The operation's name in the OpenAPI document. Clients are generated from it, so it never changes. */
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tag: string
  readonly query?: Q
  /** The query string is for the user's function: any parameter is accepted. */
  readonly anyQuery?: true
  /** The credential can be a session in `?session=`, because `EventSource` in a browser cannot send headers. */
  readonly takesSession?: true
  /** Unknown fields are refused, also in nested objects. */
  readonly body?: B
  /** The part of the body that the permissions depend on. Only this is kept while a reply is open. */
  permitted?(body: Static<B>): unknown
  /** Parses the body; default: JSON, whose mistakes are `bad_request`. */
  readonly parseBody?: (json: Buffer) => unknown
  /** The limit of a JSON body in bytes; default `DEFAULT_MAX_BODY`. */
  readonly maxBodyBytes?: number
  /** The media type of a body that is not JSON. The handler reads it. */
  readonly rawBody?: string
  /** The handler, not `serve`, sends `100 Continue` to a client that waits for it. */
  readonly sendsContinue?: true
  /** The fields of a multipart body in the OpenAPI document. The handler reads and checks it. */
  readonly form?: TSchema
  /** An example of the body in the OpenAPI document. */
  readonly example?: Static<B>
  /** Error codes in the OpenAPI document, in addition to those that follow from the rest of the route. */
  readonly errors?: readonly ErrorCode[]
  readonly reply: ReplyShape
}

type Handle<Request, Result = Reply> = (ask: Request) => Promise<Result> | Result

/** A declaration with compiled checks and without its input types. */
interface Checked<Request> extends RouteSpec {
  /** The reply contains a secret. A second attempt for an `Idempotency-Key` issues another one. */
  readonly revealsSecret: boolean
  /** The route supports an `Idempotency-Key`. */
  readonly takesKey: boolean
  readonly checkQuery: Check<unknown>
  readonly checkBody: Check<unknown> | undefined
  readonly handle: Handle<Request>
}

/**
 * A route for every client. It declares the dependencies it needs, because some are served before the API has started.
 */
export interface PublicRoute<Deps = ApiDeps> extends Checked<
  PublicAsk<Record<string, string>, unknown, unknown, Deps>
> {
  readonly needs: null
  readonly operator?: undefined
}

/** A route that requires the operator token. */
export interface OperatorRoute<Deps = ApiDeps> extends Checked<
  OperatorAsk<Record<string, string>, unknown, unknown, Deps>
> {
  readonly needs: null
  readonly operator: true
}

/** A route that requires a credential with permissions. */
export interface CredentialRoute extends Checked<Ask> {
  readonly needs: readonly Needs[]
  /** A permission that depends on stored data. It is checked before a stored reply is returned, too. */
  readonly demand?: Handle<Ask, void>
  readonly operator?: undefined
}

export type Route = PublicRoute | OperatorRoute | CredentialRoute

type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [K in Name]: string } & ParamsOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? { readonly [K in Name]: string }
    : Path extends `${string}*${infer Name}`
      ? { readonly [K in Name]: string }
      : unknown

const NO_QUERY = { type: 'object', properties: {} } as unknown as TObject

/** Fields of a reply that are shown once. */
const SECRETS = ['token', 'ticket']

/** The body of a GET has no meaning (RFC 9110, 9.3.1), and a handler checks what it reads itself. */
const takesNoBody = ({ method, form, rawBody }: RouteSpec): boolean =>
  method !== 'GET' && form === undefined && rawBody === undefined

const checked = <Request>(
  spec: RouteSpec & { readonly handle: unknown },
  { takesKey }: { readonly takesKey: boolean },
): Checked<Request> => {
  const body = spec.body && closed(spec.body)
  return {
    ...spec,
    ...(body && { body }),
    ...(spec.form && { form: closed(spec.form) }),
    handle: spec.handle as Handle<Request>,
    takesKey,
    revealsSecret: SECRETS.some(
      (name) => name in ((spec.reply.schema as TObject | undefined)?.properties ?? {}),
    ),
    checkQuery: spec.anyQuery ? (query) => query : checkQuery(spec.query ?? NO_QUERY),
    checkBody: body ? checkBody(body) : takesNoBody(spec) ? checkNoBody : undefined,
  }
}

/** The input of a declaration: its path, its parameters and its handler have matching types. */
type Declared<Path, Q extends TObject, B extends TSchema, Request> = RouteSpec<Q, B> & {
  readonly path: Path
  readonly handle: Handle<Request>
}

/**
 * Declares an endpoint for credentials. The router, the checks and the OpenAPI document are derived from these
 * declarations.
 */
export const route = <Path extends string, Q extends TObject, B extends TSchema>({
  needs,
  demand,
  ...spec
}: Declared<Path, Q, B, Ask<ParamsOf<Path>, Static<Q>, Static<B>>> & {
  readonly needs: Needs<ParamsOf<Path>> | readonly Needs<ParamsOf<Path>>[]
  readonly demand?: Handle<Ask<ParamsOf<Path>, Static<Q>, Static<B>>, void>
}): CredentialRoute => ({
  // A bare reply has a protocol of its own for repetitions.
  ...checked<Ask>(spec, { takesKey: spec.method === 'POST' && spec.reply.kind !== 'bare' }),
  ...(demand && { demand: demand as Handle<Ask, void> }),
  needs: (Array.isArray(needs) ? needs : [needs]) as readonly Needs[],
})

/** Declares an endpoint that requires the operator token. */
export const operatorRoute = <Path extends string, Q extends TObject, B extends TSchema, Deps = ApiDeps>(
  spec: Declared<Path, Q, B, OperatorAsk<ParamsOf<Path>, Static<Q>, Static<B>, Deps>>,
): OperatorRoute<Deps> => ({
  ...checked<OperatorAsk<Record<string, string>, unknown, unknown, Deps>>(spec, {
    // An import and an export can be repeated without a key.
    takesKey: spec.method === 'POST' && spec.rawBody === undefined && spec.reply.kind !== 'bytes',
  }),
  needs: null,
  operator: true,
})

/** Declares an endpoint that requires no credential. */
export const publicRoute = <Path extends string, Q extends TObject, B extends TSchema, Deps = ApiDeps>(
  spec: Declared<Path, Q, B, PublicAsk<ParamsOf<Path>, Static<Q>, Static<B>, Deps>>,
): PublicRoute<Deps> => ({ ...checked(spec, { takesKey: false }), needs: null })
