/** Memory of one batch of events, beside its last event: a slow reader keeps its batch. */
export const BATCH_BYTES = 1 << 20
