import type { RunError } from '../events/run.ts'
import { isAppError, messageOf } from '../errors.ts'
import { ProtocolViolation } from './frames.ts'
import type { HostCall } from '../sdk/wire.ts'

/** The host calls of one run: numbered from 0 by the child, served in order of arrival. */
export class HostCalls {
  readonly #serve: (call: HostCall) => Promise<unknown>
  readonly #pending = new Set<Promise<unknown>>()
  #next = 0

  constructor(serve: (call: HostCall) => Promise<unknown>) {
    this.#serve = serve
  }

  get idle(): boolean {
    return this.#pending.size === 0
  }

  /** Checks the number of the call about to be served. */
  begin(call: number): void {
    if (call !== this.#next)
      throw new ProtocolViolation(`Expected host call ${this.#next} of the run, got ${call}`)
    this.#next++
  }

  async serve(request: HostCall): Promise<unknown> {
    const served = this.#serve(request)
    if (request.op === 'run') return served // a child run outlives a parent that does not wait for it
    this.#pending.add(served)
    try {
      return await served
    } finally {
      this.#pending.delete(served)
    }
  }

  /** Resolves when what the run left un-awaited is done too: it must be durable before the run's end is. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }
}

/** As user code gets it. */
export const errorOfHostCall = (error: unknown): RunError => ({
  code: isAppError(error) ? error.code : codeOf(error),
  message: messageOf(error),
})

const codeOf = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'internal_server_error'
}
