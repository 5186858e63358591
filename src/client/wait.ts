/** Waits; rejects with the reason of the signal when it aborts. */
export const wait = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(reasonOf(signal))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })

export const reasonOf = (signal?: AbortSignal): Error =>
  signal?.reason instanceof Error ? signal.reason : new DOMException('The request was aborted', 'AbortError')

/** The first pause after a failure, and the longest one, milliseconds. */
const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 10_000

/** The longest time that a request waits because the service asks for it. A caller would take a longer one for a hang. */
const LONGEST_ASKED_S = 30

/** Whether the service asks for a wait that only the caller can decide about, such as until a daily amount is there again. */
export const isLongWait = (retryAfterSeconds: number | null): boolean =>
  (retryAfterSeconds ?? 0) > LONGEST_ASKED_S

/** The pause before the next attempt: doubled each time, and spread so that clients do not return all at once. */
export const pauseOf = (failures: number, retryAfterSeconds: number | null): number => {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS)
  return Math.max((retryAfterSeconds ?? 0) * 1000, longest * (0.5 + Math.random() / 2))
}
