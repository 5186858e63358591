import type { Cursor, Recorded } from '../../src/events/event.ts'
import type { Doc } from '../../src/ports/readModels.ts'
import type { Event, Run } from '../support/build.ts'

/** An event that a client published. Its data contains the token, which no other event has. */
export interface Publication {
  readonly token: string
  /** The ids in the acknowledgements. A request that was repeated with its `Idempotency-Key` may have several. */
  readonly event_ids: readonly string[]
}

/** A reply to a webhook request, whose body contains the token. */
export interface WebhookReply {
  readonly token: string
  readonly status: number
}

/** A version of a file that a client sent. The versions of a path are in the order of their requests. */
export interface SentFile {
  readonly path: string
  readonly etag: string
  readonly acknowledged: boolean
}

/** A look at an event, sent after its acknowledgement. */
export interface Look {
  readonly event_id: string
  readonly status: number
}

/** A reply that no client expects, whatever fails in the meantime. */
export interface WrongReply {
  readonly request: string
  readonly status: number
  readonly text: string
}

/** User code reported that it began, before it did anything else. */
export interface Effect {
  readonly fn: string
  readonly run_id: string
  readonly event_id: string | null
  /** The token of a webhook request. */
  readonly token?: string
}

/** Calls of the service that succeeded in user code, reported before the function returned. */
export interface CallsOfRun {
  readonly run_id: string
  /** Ids that `send` returned. */
  readonly sent: readonly string[]
  /** Ids that `call` returned. */
  readonly called: readonly string[]
  /** Paths of files that were stored. */
  readonly stored: readonly string[]
  /** The number of `emit` that resolved. */
  readonly emitted: number
}

/** One received event of a stream. */
export interface Frame {
  readonly id: string
  readonly event: string
}

/** Everything that one consumer received, across its reconnections, in the order of arrival. */
export interface Transcript {
  readonly name: string
  /** `environment`: from the start of the log. `consumer`: named, from the start. `stream`: from its published event. */
  readonly kind: 'environment' | 'consumer' | 'stream'
  /** Of a stream. */
  readonly stream_id?: string
  readonly frames: readonly Frame[]
}

/** The lists that clients read when all work had ended. */
export interface Lists {
  readonly runs: readonly Pick<Run, 'run_id' | 'status' | 'attempt'>[]
  readonly events: readonly Pick<Event, 'event_id'>[]
  readonly files: readonly { readonly path: string; readonly etag: string }[]
  readonly stats: Readonly<Record<'total_runs' | 'running' | 'succeeded' | 'failed' | 'cancelled', number>>
}

/** The stored documents of a read model, read without the service. */
export interface StoredModel {
  readonly name: string
  readonly docs: readonly Doc[]
  readonly checkpoint: Cursor
}

/** The way in which a function must end. `either`: it depends on calls that may be refused. */
export type Expected = 'succeeds' | 'fails' | 'either'

/** Everything that the checker compares. */
export interface Records {
  readonly log: readonly Recorded[]
  readonly env_id: string
  readonly expected: ReadonlyMap<string, Expected>
  readonly publications: readonly Publication[]
  /** Builds whose deployment was acknowledged. */
  readonly deployed: readonly string[]
  readonly webhooks: readonly WebhookReply[]
  readonly files: readonly SentFile[]
  readonly looks: readonly Look[]
  readonly wrongReplies: readonly WrongReply[]
  /** Runs that clients asked to cancel. */
  readonly cancelled: readonly string[]
  readonly effects: readonly Effect[]
  readonly calls: readonly CallsOfRun[]
  readonly transcripts: readonly Transcript[]
  /** Null if they could not be read, which is an incident. */
  readonly lists: Lists | null
  readonly models: readonly StoredModel[]
  /** The position of the last event, published when all work had ended. */
  readonly quietAt: Cursor
  /** Events of the soak itself, such as a node that ended although no fault did it. */
  readonly incidents: readonly string[]
}
