/** Maximum number of concurrent runs of one worker. Further events wait in the log. */
export const MAX_CONCURRENT_RUNS = 2000

/** Maximum number of received deliveries without a claim. */
export const IN_FLIGHT = 256
