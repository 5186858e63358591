import type { Page } from '../../client/index.ts'

/** The service returns no longer page. */
const PAGE = 100
/** Requests that are sent together. */
const TOGETHER = 6

/** Reads a list to its end, page by page. */
export const readAll = async <T>(
  pageAt: (page: { readonly limit: number; readonly offset: number }) => Promise<Page<T>>,
): Promise<readonly T[]> => {
  const found: T[] = []
  for (let offset = 0; ; offset += PAGE) {
    const { data, pagination } = await pageAt({ limit: PAGE, offset })
    found.push(...data)
    if (!pagination.has_more) return found
  }
}

/** Calls `act` for each item, some at a time. Rejects with the first failure; calls in progress then continue. */
export const together = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await act(item)
  }
  await Promise.all(Array.from({ length: TOGETHER }, worker))
}
