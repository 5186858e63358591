import type { HostCall } from '../ports/runtime.ts'

/** Maximum number of concurrent runs of one worker: runs that a child has started. */
export const MAX_CONCURRENT_RUNS = 2000

/** An organization has at most this many runs in children for each free place, so it leaves some to the others. */
export const SLOTS_PER_FREE = 7

/** Evaluated code of this length counts as one more waiting run. */
export const WEIGHT_CHARACTERS = 4096

/** Waiting runs of a line that keep their input, of up to 64 KiB, in memory. */
export const INPUTS_IN_HAND = 64

/** Maximum number of received deliveries without a claim. */
export const IN_FLIGHT = 256

/** Bytes of content in host calls that are served at a time. */
export const CONTENT_BYTES = 48 << 20
/** A host call waits this long for memory, milliseconds. The timeout of its run is usually shorter. */
export const CONTENT_WAIT_MS = 300_000

/** A chunk of a mebibyte, as bytes and as base64. */
const GIVEN_BYTES = 3 << 20

/** The memory that the content of a host call needs while it is served. */
export const contentBytes = (call: HostCall): number => {
  if (call.op === 'payload') return GIVEN_BYTES
  if (call.op !== 'files') return 0
  const { content_base64: given } = call.params
  if (typeof given === 'string') return 2 * given.length
  return call.action === 'get' || call.action === 'read' ? GIVEN_BYTES : 0
}

/** A run that was lost so often with a process gets one of its own (decision 0031). */
export const SHARED_LOSSES = 2
