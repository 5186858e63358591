import { clock } from '../../clock.ts'
import { AppError, messageOf } from '../../errors.ts'
import { withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'
import { type OpenClient, openClient, type ServerFeatures } from './client.ts'
import { silent } from './failures.ts'

/** One client. `gone` aborts when another client replaces it. */
export interface Generation extends Pick<OpenClient, 'client' | 'inner'> {
  readonly gone: AbortSignal
}

/** Time for the first reply to a call, milliseconds. The client waits without a limit. */
export const FIRST_REPLY_MS = 3000
/** The shortest time between two replacements: a new client needs a moment to find its node. */
const RENEW_EVERY_MS = 1000

/**
 * The connection to the event store. The client reconnects by itself after most failures. After others, such as
 * a paused node or a failed first discovery, a new client replaces it, and its users restart on `gone`.
 */
export class Connection {
  readonly #address: Address
  readonly #closed = new AbortController()
  #opened: OpenClient
  #current: Generation
  #gone: AbortController
  #renewedAt = clock.monotonic()
  #heardAt = clock.monotonic()
  #tlsError: unknown
  #renewalFailure: unknown

  constructor(address: Address) {
    this.#address = address
    ;[this.#opened, this.#current, this.#gone] = this.#open()
  }

  get current(): Generation {
    return this.#current
  }

  get closed(): AbortSignal {
    return this.#closed.signal
  }

  /** The error of the last TLS connection; undefined if it succeeded. */
  get tlsError(): unknown {
    return this.#tlsError
  }

  /** Returns the features of the server. */
  features(): Promise<ServerFeatures> {
    return this.reply(({ inner }) => inner.capabilities)
  }

  /** Settles as the call does. Rejects with `unavailable` if there is no reply in time. */
  async reply<T>(
    call: (generation: Generation) => Promise<T>,
    { generation = this.#current, ms = FIRST_REPLY_MS }: { generation?: Generation; ms?: number } = {},
  ): Promise<T> {
    const began = clock.monotonic()
    const replied = await withDeadline(ms, call(generation), () => {
      this.suspect(began)
      return silent()
    })
    this.heard()
    return replied
  }

  /** Records that the server has answered any call. */
  heard(at = clock.monotonic()): void {
    this.#heardAt = at
  }

  /** Replaces the client if the server has answered no call since a time: another node may answer. */
  suspect(since: number): void {
    if (this.#heardAt < since) this.renew()
  }

  /**
   * Replaces a client that no longer works. Never throws, because timers call it: while the files of TLS cannot be read, the
   * present client stays until the next failure, and `explained` says why.
   */
  renew(): void {
    if (this.closed.aborted || clock.monotonic() - this.#renewedAt < RENEW_EVERY_MS) return
    this.#renewedAt = clock.monotonic()
    const [opened, gone] = [this.#opened, this.#gone]
    try {
      ;[this.#opened, this.#current, this.#gone] = this.#open()
    } catch (error) {
      this.#renewalFailure = error
      return
    }
    this.#renewalFailure = undefined
    gone.abort()
    void opened.close()
  }

  /** Adds the reason why the client could not be replaced to the data of a failure, which no API client gets. */
  explained(error: AppError): AppError {
    if (this.#renewalFailure === undefined) return error
    const { code, message, cause, data } = error
    return new AppError(code, message, {
      cause,
      data: { ...data, renewal: messageOf(this.#renewalFailure) },
    })
  }

  async close(): Promise<void> {
    if (this.closed.aborted) return
    this.#closed.abort()
    this.#gone.abort()
    await this.#opened.close()
  }

  #open(): [OpenClient, Generation, AbortController] {
    const opened = openClient(this.#address, (error) => (this.#tlsError = error))
    const gone = new AbortController()
    return [opened, { client: opened.client, inner: opened.inner, gone: gone.signal }, gone]
  }
}
