import { isAppError, messageOf } from '../errors.ts'
import { FailedRun } from '../events/failedRun.ts'
import { ProtocolViolation } from './frames.ts'
import type { CallError } from './protocol.ts'
import type { HostCall } from '../sdk/wire.ts'
import type { Invocation } from '../ports/runtime.ts'

type Serve = Invocation['onHostCall']

/** The host calls of one run. The child numbers them from 0; they are served in order of arrival. */
export class HostCalls {
  readonly #serve: Serve
  readonly #pending = new Set<Promise<unknown>>()
  #next = 0

  constructor(serve: Serve) {
    this.#serve = serve
  }

  get idle(): boolean {
    return this.#pending.size === 0
  }

  /** Checks the number of the next host call. */
  begin(call: number): void {
    if (call !== this.#next)
      throw new ProtocolViolation(`Expected host call ${this.#next} of the run, got ${call}`)
    this.#next++
  }

  /** Serves the call when it is its turn; null: at once. `onRequested`: see `Invocation.onHostCall`. */
  async serve(
    request: HostCall,
    { turn = null, onRequested = () => {} }: { turn?: Promise<void> | null; onRequested?: () => void } = {},
  ): Promise<unknown> {
    const serve = () => this.#serve(request, onRequested)
    const served = turn ? turn.then(serve) : serve()
    if (request.op === 'run') return served // a child run may outlive a parent that does not await it
    this.#pending.add(served)
    try {
      return await served
    } finally {
      this.#pending.delete(served)
    }
  }

  /** Resolves when all host calls are done, also unawaited ones, so that their facts precede the run's end. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }
}

/** The error that user code receives. */
export const errorOfHostCall = (error: unknown): CallError => ({
  code: isAppError(error) ? error.code : codeOf(error),
  message: messageOf(error),
  ...(error instanceof FailedRun && { run_id: error.run_id, failure: error.failure }),
})

const codeOf = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'internal_server_error'
}
