import type { Static } from 'typebox'
import type { Backups } from '../commands/backups/backups.ts'
import type { CommandDeps } from '../commands/deps.ts'
import type { Logger } from '../logger.ts'
import type { Authenticator } from '../access/authenticator.ts'
import type { Idempotency } from '../commands/idempotency.ts'
import type { Guesses } from './http/guesses.ts'
import type { Operator } from './http/operator.ts'
import type { RequestMeter } from './http/requestMeter.ts'
import type { Exposition } from '../ports/metrics.ts'
import type { CorsOrigins } from '../ports/corsOrigins.ts'
import type { TrustedProxies } from '../ports/trustedProxies.ts'
import type { ApiMemory } from './http/memory.ts'
import type { OrgRates } from './http/orgRates.ts'
import type { OpenCounts } from '../plans/openCounts.ts'
import type { Check, EngineState, LivingNode } from './schemas.ts'
import type { ReadModelStatus } from '../projections/readModelStatus.ts'
import type { EnvFeeds } from './streams/envFeed.ts'

/** The dependencies of handlers: those of commands and those of HTTP. */
export interface ApiDeps extends CommandDeps {
  readonly orgRates: OrgRates
  readonly memory: ApiMemory
  readonly openCounts: OpenCounts
  /** The state of the read models, and requests to rebuild them. */
  readonly readModels: {
    status(): Promise<readonly ReadModelStatus[]>
    rebuild(names: readonly string[], options: { readonly verify: boolean }): Promise<void>
    cancelRebuild(names: readonly string[]): Promise<void>
  }
  readonly authenticator: Authenticator
  /** The requests of each address without a valid credential. */
  readonly guesses: Guesses
  /** The unknown names that a TLS proxy has asked about. */
  readonly asks: Guesses
  readonly operator: Operator
  /** The host name of the operator's API, in lower case; null: every host. */
  readonly operatorHost: string | null
  readonly idempotency: Idempotency
  /** The backups in progress on this node. */
  readonly backups: Backups
  readonly feeds: EnvFeeds
  readonly trustedProxies: TrustedProxies
  /** The origins whose pages may use the API; null: none. */
  readonly corsOrigins: CorsOrigins | null
  readonly requests: RequestMeter
  /** Opens the metrics of this node at their first request. */
  readonly metrics: () => Promise<Exposition>
  readonly logger: Logger
  readonly sseTimeoutMs: number
  readonly webhookTimeoutMs: number
  /** Returns why the service is not ready; null when it is. */
  readonly notReady: () => string | null
  /** Returns further fields for `/readyz`: outages, the age of the oldest untaken event, and skipped facts. */
  readonly readyDetails?: () => Readonly<Record<string, unknown>>
  /** A folder for uploads in progress, on the same disk as the build cache. */
  readonly scratchDir: string
  /** The isolation of user code; null on a node that executes none. */
  readonly sandbox: { readonly tier: string; readonly reason: string } | null
  /** This process, for the operator. */
  readonly node: {
    readonly node_id: string
    readonly roles: readonly string[]
    readonly engines: () => readonly Static<typeof EngineState>[]
    /** The living nodes of the installation, this one included. */
    readonly nodes: () => Promise<readonly Static<typeof LivingNode>[]>
    /** Checks everything that an operator can fix. */
    readonly checks: () => Promise<readonly Static<typeof Check>[]>
  }
  readonly about: { readonly version: string; readonly git_sha: string; readonly start_time: string }
}

/** The dependencies that exist on every node from its first moment. */
export type FrontDeps = Pick<
  ApiDeps,
  | 'logger'
  | 'about'
  | 'notReady'
  | 'readyDetails'
  | 'sandbox'
  | 'trustedProxies'
  | 'corsOrigins'
  | 'requests'
  | 'metrics'
>

/** The operator of a node whose API has not started. */
export interface LaterOperator {
  /** Null until the keys of the installation are open. */
  readonly operator: () => Operator | null
}

/** The dependencies of the metrics, which every node serves. */
export type MetricsDeps = Pick<ApiDeps, 'metrics'>
