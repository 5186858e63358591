import type { Page } from '../../client/index.ts'
import { allPages, type PageQuery } from '../../client/lists.ts'

/** Requests that are sent together. */
const TOGETHER = 6

/** Reads a list to its end, page by page, no item twice. */
export const readAll = async <T>(
  pageAt: (page: PageQuery) => Promise<Page<T>>,
  idOf: (item: T) => string,
): Promise<readonly T[]> => {
  const found: T[] = []
  for await (const item of allPages(pageAt, idOf)) found.push(item)
  return found
}

/** Calls `act` for each item, some at a time. Rejects with the first failure; calls in progress then continue. */
export const together = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await act(item)
  }
  await Promise.all(Array.from({ length: TOGETHER }, worker))
}
