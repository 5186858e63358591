/** In place of idempotency keys, for calls that have none. */
export const noKeys = {
  once: () => Promise.reject(new Error('Expected a call without an idempotency key')),
}
