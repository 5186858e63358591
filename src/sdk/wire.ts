/** The data on the pipe between the service and its children. This file imports nothing from the server. */
import type { Event } from './input.ts'

/** The result of `currentRun()` inside a function. */
export interface RunInfo {
  readonly run_id: string
  readonly stream_id: string
  readonly run_type: 'call' | 'event' | 'schedule' | 'run' | 'eval' | 'repl'
  readonly attempt: number
  readonly event_id: string | null
  readonly origin_run_id: string | null
  readonly project_id: string
  readonly project_name: string
  /** The trace context of the run as a W3C `traceparent` header, for requests to other services; absent if there is none. */
  readonly traceparent?: string
}

/** A large value that remains in the service: the process of the function fetches its bytes in chunks (`payload`). */
export interface Kept {
  /** Numbers the kept values of one run. */
  readonly handle: number
  /** Bytes. */
  readonly size: number
}

/**
 * The input of a function (SPEC.md, Webhook request and Handler-side event). `kept` contains what is too large for it, as
 * JSON: the arguments or the data of the event that called the function, the data of the event. Of a webhook request,
 * it contains the bytes of the body.
 */
export type Input = (
  | { readonly kind: 'args'; readonly args: readonly unknown[] }
  | { readonly kind: 'event'; readonly event: Event }
  | { readonly kind: 'webhook'; readonly request: WebhookRequest }
) & { readonly kept?: Kept }

/** A webhook request in a frame, with the keys of SPEC.md; `toWebhookRequest` adds the aliases. */
export interface WebhookRequest {
  readonly method: string
  readonly url: string
  readonly 'original-url'?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  readonly params?: Readonly<Record<string, string>>
  /** Present only in requests that earlier versions stored; otherwise the child parses `body-raw`. */
  readonly body?: unknown
  readonly 'body-raw'?: string
  /** Base64 here; the handler receives a `Uint8Array`. */
  readonly 'body-bytes'?: string
  readonly ip?: string
  readonly auth?: Readonly<Record<string, unknown>>
}

/** A JSON value as its text: large values of a function are not parsed in the service. */
export interface JsonText {
  readonly bytes: Uint8Array
}

/** What has one effect under one key. */
interface Keyed {
  readonly idempotency_key?: string
}

/** A request of user code to the service, made through the SDK while its run is in progress. */
export type HostCall =
  | { readonly op: 'emit'; readonly data_type: string; readonly payload: unknown }
  | ({ readonly op: 'send'; readonly event_type: string; readonly event_data: unknown } & Keyed)
  | ({ readonly op: 'call'; readonly fn: string; readonly args: readonly unknown[] | JsonText } & Keyed)
  | { readonly op: 'run'; readonly fn: string; readonly args: readonly unknown[] | JsonText }
  | { readonly op: 'context'; readonly key: string }
  /** Fetches a chunk of a kept value, as base64. The runtime makes this call, not the SDK. */
  | { readonly op: 'payload'; readonly handle: number; readonly from: number }
  | {
      readonly op: 'files'
      readonly action: FileAction
      readonly params: Readonly<Record<string, unknown>>
    }

/** Bytes of content in one frame and in each part except the last. In a frame, base64 makes them a third larger. */
export const CHUNK_BYTES = 5 << 20

/** Small content fits in one `get` or `put`; larger content requires several `read`s, or the parts of an upload. */
export const FILE_ACTIONS = [
  'get',
  'read',
  'put',
  'begin',
  'part',
  'complete',
  'abort',
  'list',
  'delete',
] as const
export type FileAction = (typeof FILE_ACTIONS)[number]
