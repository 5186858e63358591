import type { CallOptions, Client as Stub, Metadata } from '@grpc/grpc-js'
import { EventStoreDBClient } from '@eventstore/db-client'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { atMost, withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'

/** Private methods of the client, which calls over the generated stubs need. */
interface Inner {
  execute<S extends Stub, T>(
    stub: new (address: string, credentials: never) => S,
    name: string,
    action: (stub: S) => Promise<T>,
  ): Promise<T>
  callArguments(options: { requiresLeader?: boolean }, call?: CallOptions): [Metadata, CallOptions]
  readonly capabilities: Promise<ServerFeatures>
}

interface ServerFeatures {
  readonly serverVersion: string
  supports(method: { readonly path: string }): boolean
}

/** One client. `gone` aborts when another client replaces it. */
export interface Generation {
  readonly client: EventStoreDBClient
  readonly inner: Inner
  readonly gone: AbortSignal
}

/** The shortest time between two replacements: a new client needs a moment to find its node. */
const RENEW_EVERY_MS = 1000
const FEATURES_MS = 3000
/** `dispose` can hang for minutes. */
const DISPOSE_MS = 2000

/**
 * The connection to the event store. The client reconnects by itself after most failures. After others, such as
 * a paused node or a failed first discovery, a new client replaces it, and its users restart on `gone`.
 */
export class Connection {
  readonly #address: Address
  readonly #closed = new AbortController()
  #current: Generation
  #giveUp: () => void
  #renewedAt = clock.monotonic()

  constructor(address: Address) {
    this.#address = address
    ;[this.#current, this.#giveUp] = open(address)
  }

  get current(): Generation {
    return this.#current
  }

  get closed(): AbortSignal {
    return this.#closed.signal
  }

  /** Returns the features of the server. The client's own request has no deadline. */
  features(): Promise<ServerFeatures> {
    return withDeadline(FEATURES_MS, this.#current.inner.capabilities, silent)
  }

  /** Replaces a client that no longer works. */
  renew(): void {
    if (this.closed.aborted || clock.monotonic() - this.#renewedAt < RENEW_EVERY_MS) return
    this.#renewedAt = clock.monotonic()
    const { client } = this.#current
    const giveUp = this.#giveUp
    ;[this.#current, this.#giveUp] = open(this.#address)
    giveUp()
    void dispose(client)
  }

  async close(): Promise<void> {
    if (this.closed.aborted) return
    this.#closed.abort()
    this.#giveUp()
    await dispose(this.#current.client)
  }
}

const open = ({ connectionString }: Address): [Generation, () => void] => {
  const client = EventStoreDBClient.connectionString(connectionString)
  const giveUp = new AbortController()
  return [{ client, inner: client as unknown as Inner, gone: giveUp.signal }, () => giveUp.abort()]
}

const dispose = async (client: EventStoreDBClient): Promise<void> => {
  const channel = (client as unknown as { getChannel(): Promise<{ close(): void }> }).getChannel()
  await atMost(DISPOSE_MS, client.dispose()).catch(() => {})
  await atMost(
    DISPOSE_MS,
    channel.then((open) => open.close()),
  ).catch(() => {})
}

/** The failure of a server that does not answer in time. */
export const silent = (): AppError => new AppError('unavailable', 'The event store does not answer')
