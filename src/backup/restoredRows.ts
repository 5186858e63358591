import type { StoredRow, StreamGaps } from '../ports/storedLog.ts'
import type { ReadBackup } from './readBackup.ts'

/**
 * Resolves with a function that reads the rows of a backup as a log must have them: a stream has lost its oldest facts first. A
 * segment never changes, so it keeps facts whose successors have expired before the next increment.
 */
export const openRestoredRows = async (
  backup: Pick<ReadBackup, 'manifest' | 'rows'>,
  gaps: StreamGaps,
): Promise<() => AsyncGenerator<StoredRow>> => {
  try {
    for await (const row of rowsOf(backup)) gaps.note(row)
  } finally {
    gaps.close()
  }
  return async function* () {
    for await (const row of rowsOf(backup)) yield gaps.without(row)
  }
}

async function* rowsOf({ manifest, rows }: Pick<ReadBackup, 'manifest' | 'rows'>): AsyncGenerator<StoredRow> {
  for (const segment of manifest.segments)
    for await (const { first, count, text } of rows(segment))
      yield { first, count, text: text.toString('utf8') }
}
