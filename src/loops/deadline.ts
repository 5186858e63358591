/**
 * Settles as the work does, or rejects with `late()` after `ms`. The work then continues, and its result is dropped.
 */
export const withDeadline = async <T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Settles as the work does, or rejects with `gone()` when the signal aborts; default: its reason. The work then continues, and
 * its result is dropped.
 */
export const unlessAborted = async <T>(
  signal: AbortSignal,
  work: Promise<T>,
  gone: () => unknown = () => signal.reason,
): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(gone())
  signal.addEventListener('abort', giveUp)
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** Settles as the work does, or with undefined after `ms`. The process may end while it waits. */
export const atMost = async <T>(ms: number, work: Promise<T>): Promise<T | undefined> => {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, ms, undefined)
  timer.unref()
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
