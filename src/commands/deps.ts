import type { Authenticator } from '../access/authenticator.ts'
import type { Payloads } from '../content/payloads.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import type { Cause, EnvCause } from '../events/event.ts'
import type { NewId } from '../ids.ts'
import type { WaitingCalls } from '../loops/waitingCalls.ts'
import type { Quotas } from '../plans/quotas.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { Certificates } from '../ports/certificates.ts'
import type { Claimer, RunOffers } from '../ports/claimer.ts'
import type { Dns } from '../ports/dns.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Runtime } from '../ports/runtime.ts'
import type { Tracer } from '../ports/tracer.ts'
import type { Views } from '../projections/views.ts'
import type { DataKeys } from '../secrets/dataKeys.ts'
import type { Keyring } from '../secrets/keyring.ts'
import type { MasterKeyFile, MasterKeys } from '../secrets/masterKeys.ts'
import type { WrappedKeys } from '../secrets/wrappedKeys.ts'

/** The dependencies of all commands. Each command selects its own by `Pick`. */
export interface CommandDeps {
  readonly store: EventStore
  readonly aggregates: Aggregates
  readonly views: Views
  readonly blobs: Blobs
  readonly payloads: Payloads
  /** Reads the functions of uploaded builds. */
  readonly runtime: Pick<Runtime, 'inspect' | 'forget' | 'prewarm'>
  /**
   * The worker of this process, which claims runs in the append that publishes their event; null when there is none.
   */
  readonly claimer: Claimer | null
  /** The workers of other processes; null when there are none. */
  readonly offers: RunOffers | null
  /** Applies the end or change of a credential at once, here and on the other nodes. */
  readonly authenticator: Pick<Authenticator, 'ended'>
  readonly keyring: Keyring
  readonly dataKeys: DataKeys
  readonly masterKeys: MasterKeys
  /** Stores the master key; null when `SVC_MASTER_KEY` provides it. */
  readonly masterKeyFile: MasterKeyFile | null
  readonly wrappedKeys: WrappedKeys
  readonly quotas: Quotas
  readonly dns: Dns
  /** Null where a proxy in front of the service does TLS. */
  readonly certificates: Certificates | null
  /** The DNS zone that custom domains point into. */
  readonly domainsZone: string
  /** Time between two checks of the records of an active domain. */
  readonly domainRecheckMs: number
  /** Returns the URL where clients reach the service, without a trailing slash. */
  readonly publicUrl: () => string
  /** Null when no collector of traces is configured. */
  readonly tracer: Tracer | null
  /** Aborts when the server begins to stop: streams and waits that a client can repeat end. */
  readonly stopping: AbortSignal
  readonly calls: WaitingCalls
}

/** The caller of a command. */
export interface Caller<C extends Cause = EnvCause> {
  /** The environment, the request or run, and the credential, which the facts of the command record. */
  readonly cause: C
  /** Generates the ids of the resources that the command creates. */
  readonly newId: NewId
}
