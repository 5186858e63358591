/** Counters as cursors of documents that no fact of the log changed: padded, so that they sort. */
export const cursorAt = (count: number): string => String(count).padStart(16, '0')

export const countOf = (cursor: string | undefined): number => (cursor ? Number(cursor) : 0)
