import type { Offers } from '../cluster/offers.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import type { FileUploads } from '../content/fileUploads.ts'
import type { Files } from '../content/files.ts'
import type { DataKeys } from '../secrets/dataKeys.ts'
import type { Logger } from '../logger.ts'
import type { Payloads } from '../content/payloads.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Views } from '../projections/views.ts'
import type { Quotas } from '../plans/quotas.ts'
import type { Runtime } from '../ports/runtime.ts'
import type { Claimer } from '../worker/worker.ts'
import type { DomainDeps } from '../commands/advanceDomain.ts'
import type { Keyring } from '../secrets/keyring.ts'
import type { Authenticator } from './http/authenticate.ts'
import type { OrgRates } from './http/orgRates.ts'
import type { Operator } from './http/operator.ts'
import type { Idempotency } from './http/idempotency.ts'
import type { EnvFeeds } from './streams/envFeed.ts'

/** Everything a handler may use; made once in `start.ts`. */
export interface ApiDeps {
  readonly store: EventStore
  readonly aggregates: Aggregates
  readonly views: Views
  readonly blobs: Blobs
  readonly payloads: Payloads
  readonly files: Files
  readonly uploads: FileUploads
  /** Reads the functions of uploaded builds. */
  readonly runtime: Pick<Runtime, 'inspect' | 'prewarm'>
  /** The worker of this process, which claims what is published here in the same append; null when there is none. */
  readonly claimer: Claimer | null
  /** To the workers of other processes; null when there are none. */
  readonly offers: Pick<Offers, 'make'> | null
  readonly keyring: Keyring
  readonly dataKeys: DataKeys
  readonly quotas: Quotas
  readonly orgRates: OrgRates
  readonly authenticator: Authenticator
  readonly operator: Operator
  readonly idempotency: Idempotency
  readonly feeds: EnvFeeds
  /** What custom domains need to get on. */
  readonly domains: Pick<DomainDeps, 'dns' | 'certificates' | 'zone'>
  readonly logger: Logger
  /** Where clients reach the service, without a trailing slash. */
  readonly publicUrl: () => string
  readonly sseTimeoutMs: number
  readonly webhookTimeoutMs: number
  /** Aborts when the server begins to stop: long replies end. */
  readonly stopping: AbortSignal
  /** Why the service is not ready; null when it is. */
  readonly notReady: () => string | null
  /** A folder for uploads under way, on the same disk as the build cache. */
  readonly scratchDir: string
  readonly about: { readonly version: string; readonly git_sha: string; readonly start_time: string }
}
