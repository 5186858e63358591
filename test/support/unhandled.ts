/** Collects the rejections without a handler that occur while `work` runs. */
export const unhandledDuring = async (work: () => Promise<void>): Promise<unknown[]> => {
  const unhandled: unknown[] = []
  const listen = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', listen)
  try {
    await work()
    return unhandled
  } finally {
    process.off('unhandledRejection', listen)
  }
}
