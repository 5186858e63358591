import type { ChunkReads, Payloads } from '../content/payloads.ts'
import { AppError, isRetryable } from '../errors.ts'
import { KeptJson } from '../events/rawJson.ts'
import type { PayloadRef } from '../events/scalars.ts'

/** Bytes of one chunk: a reply that the function does not read stays in the memory of this process. */
const CHUNK_BYTES = 1 << 20

/**
 * The large payloads of one run. Its process fetches them in chunks, so that no payload is in the memory of the service
 * as a whole, and a run that waits for its turn occupies none.
 */
export class KeptPayloads {
  readonly #payloads: Payloads
  readonly #reads: ChunkReads[] = []
  readonly #input = new Set<PayloadRef>()
  #outage: unknown

  constructor(payloads: Payloads) {
    this.#payloads = payloads
  }

  add(ref: PayloadRef): KeptJson {
    return new KeptJson(this.#reads.push(this.#payloads.inChunks(ref)) - 1, ref.size)
  }

  /** The same for a payload of the input, which is stored. Rejects with `LostBlob`, or with `not_found` if it has expired. */
  async addInput(ref: PayloadRef): Promise<KeptJson> {
    await this.#payloads.demandStored(ref)
    this.#input.add(ref)
    return this.add(ref)
  }

  get hasInput(): boolean {
    return this.#input.size > 0
  }

  /** The outage that withheld a chunk of the input; undefined: none did. */
  get outage(): unknown {
    return this.#outage
  }

  /**
   * Returns a chunk as base64. Rejects with `bad_request` for a value that the run was not given, and with `LostBlob` instead of the
   * last chunk of a damaged one, so that no function gets it.
   */
  async read(handle: number, from: number): Promise<string> {
    const reads = this.#reads[handle]
    if (!reads)
      throw new AppError('bad_request', `handle: expected that of a value of this run, got ${handle}`)
    try {
      return (await reads.read(from, CHUNK_BYTES)).toString('base64')
    } catch (error) {
      if (this.#input.has(reads.ref) && isRetryable(error)) this.#outage = error
      throw error
    }
  }
}
