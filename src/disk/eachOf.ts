/**
 * Calls `work` for every item, at most `most` at a time. Rejects with the first failure, when nothing is in progress any more;
 * items that had not begun then are left out.
 */
export const eachOf = async <Item>(
  items: Iterable<Item>,
  most: number,
  work: (item: Item) => Promise<void>,
): Promise<void> => {
  const left = items[Symbol.iterator]()
  let failure: { readonly error: unknown } | undefined
  const worker = async (): Promise<void> => {
    for (let next = left.next(); !next.done && !failure; next = left.next()) {
      try {
        await work(next.value)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: most }, worker))
  if (failure) throw failure.error
}
