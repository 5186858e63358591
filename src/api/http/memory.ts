import { ByteBudget } from '../../loops/byteBudget.ts'
import type { Directory } from '../../projections/directory.ts'

/** Bytes of request bodies that are read at a time. */
const BODIES_BYTES = 32 << 20
/** Bytes of the bodies of webhooks that stream to the blobs at a time. Senders without a credential must not occupy other memory. */
export const WEBHOOKS_BYTES = 32 << 20
/** Bytes of values that are parsed at a time: bodies, pages of lists, results of webhooks. */
const VALUES_BYTES = 64 << 20
/** A request waits this long for memory. */
const WAIT_MS = 10_000

/** The memory of the body of a webhook while it streams to the blobs. */
export const STREAMED_BYTES = 256 << 10
/** The memory of one document of a list: its fact has at most 64 KiB of JSON, which needs more when it is parsed. */
export const DOCUMENT_BYTES = 192 << 10

/** The memory of the API for large requests and replies, shared fairly by organizations. */
export class ApiMemory {
  readonly bodies = new ByteBudget({ name: 'request bodies', totalBytes: BODIES_BYTES, waitMs: WAIT_MS })
  readonly webhooks = new ByteBudget({
    name: 'bodies of webhooks',
    totalBytes: WEBHOOKS_BYTES,
    waitMs: WAIT_MS,
  })
  readonly values = new ByteBudget({ name: 'large values', totalBytes: VALUES_BYTES, waitMs: WAIT_MS })
  readonly #directory: Pick<Directory, 'env'>

  constructor(directory: Pick<Directory, 'env'>) {
    this.#directory = directory
  }

  /** The owner of what a request of an environment takes. */
  ownerOf(env_id: string): string {
    return this.#directory.env(env_id)?.org_id ?? env_id
  }
}
