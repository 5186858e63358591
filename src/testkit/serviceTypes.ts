import type { PublishedEvent, Run } from '../client/api.ts'
import type { Client } from '../client/client.ts'
import type { Events } from '../sdk/index.ts'
import type { DataArgument, Named } from '../sdk/typed.ts'
import type { Time } from './expected.ts'

export interface ServiceOptions {
  /** The folder of a project, which is bundled as `svc deploy` does it. */
  readonly dir?: string
  /** A build, in place of `dir`. */
  readonly zip?: Uint8Array
  /** The name of the project. Default: that of package.json, or `test` for a zip. */
  readonly project?: string
  /** The context variables of the project. */
  readonly context?: Readonly<Record<string, string>>
  /** The time at which the clock stands. Default: the current time. */
  readonly now?: Time
  /** Variables of the service, such as `SVC_EGRESS_ALLOW` for a server of the test. */
  readonly env?: Readonly<Record<string, string>>
  /** Real milliseconds after which a step that does not settle rejects. Default 30000. */
  readonly timeoutMs?: number
  /** Prints the log of the service from this level on, to standard error. Default: errors only. */
  readonly log?: 'debug' | 'info' | 'warn' | 'error'
}

export interface SentEvent extends Promise<PublishedEvent> {
  /** Waits until nothing is in progress. Resolves with the runs of the event's stream, in the order of their start. */
  settled(): Promise<Run[]>
}

/** A service in the process of the test. */
export interface TestService extends AsyncDisposable {
  readonly url: string
  /** A credential with all permissions. */
  readonly key: string
  readonly client: Client
  /** The time of the clock. */
  readonly now: Date
  /** Publishes an event. */
  send<Type extends string>(type: Named<Events, Type>, ...data: DataArgument<Events, Type>): SentEvent
  /** Waits until nothing is in progress. Retries that are due later stay. */
  settled(): Promise<void>
  /**
   * Moves the clock by milliseconds, or to a `Date` or an ISO 8601 time. Fires the schedules and retries that become due, each
   * at its time, and waits for what they start. Resolves with the runs that started, in order.
   */
  advance(to: number | string | Date): Promise<Run[]>
  /** Stops the service and removes its data. */
  stop(): Promise<void>
}
