/** Maximum number of concurrent runs of one worker: runs that a child has started. */
export const MAX_CONCURRENT_RUNS = 2000

/** An organization has at most this many runs in children for each free place, so it leaves some to the others. */
export const SLOTS_PER_FREE = 7

/** Evaluated code of this length counts as one more waiting run. */
export const WEIGHT_CHARACTERS = 4096

/** Waiting runs of an organization that keep their input, of up to 64 KiB, in memory. */
export const INPUTS_IN_HAND = 64

/** Maximum number of received deliveries without a claim. */
export const IN_FLIGHT = 256
