import type { Authenticator } from '../access/authenticator.ts'
import type { Payloads } from '../content/payloads.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import type { Cause, EnvCause } from '../events/event.ts'
import type { NewId } from '../ids.ts'
import type { Quotas } from '../plans/quotas.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { Certificates } from '../ports/certificates.ts'
import type { Claimer, RunOffers } from '../ports/claimer.ts'
import type { Dns } from '../ports/dns.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Runtime } from '../ports/runtime.ts'
import type { Views } from '../projections/views.ts'
import type { DataKeys } from '../secrets/dataKeys.ts'
import type { Keyring } from '../secrets/keyring.ts'

/** Everything that commands use. Each command names its own part of it by `Pick`. */
export interface CommandDeps {
  readonly store: EventStore
  readonly aggregates: Aggregates
  readonly views: Views
  readonly blobs: Blobs
  readonly payloads: Payloads
  /** Reads the functions of uploaded builds. */
  readonly runtime: Pick<Runtime, 'inspect' | 'prewarm'>
  /** The worker of this process, which claims what is published here in the same append; null when there is none. */
  readonly claimer: Claimer | null
  /** The workers of other processes; null when there are none. */
  readonly offers: RunOffers | null
  /** Applies the end or change of a credential at once, here and on the other nodes. */
  readonly authenticator: Pick<Authenticator, 'ended'>
  readonly keyring: Keyring
  readonly dataKeys: DataKeys
  readonly quotas: Quotas
  readonly dns: Dns
  readonly certificates: Certificates
  /** The DNS zone that custom domains point into. */
  readonly domainsZone: string
  /** Returns the URL where clients reach the service, without a trailing slash. */
  readonly publicUrl: () => string
  /** Aborts when the server begins to stop: waiting commands end soon after. */
  readonly stopping: AbortSignal
}

/** On whose behalf a command runs. */
export interface Caller<C extends Cause = EnvCause> {
  /** What its facts record: the environment, the request or run that began it, the credential. */
  readonly cause: C
  /** Where the ids of what it creates come from. */
  readonly newId: NewId
}
