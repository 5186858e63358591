/** The signal of a saga that has not ended. */
export const running = new AbortController().signal
