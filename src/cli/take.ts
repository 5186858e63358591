/** The first items of a list. */
export const take = async <Item>(items: AsyncIterable<Item>, most: number): Promise<readonly Item[]> => {
  const taken: Item[] = []
  if (most > 0)
    for await (const item of items) {
      taken.push(item)
      if (taken.length === most) break
    }
  return taken
}
