import { setImmediate as nextTurn } from 'node:timers/promises'
import { frameOf } from '../../backup/rowFrames.ts'
import type { StoredLog } from '../../ports/storedLog.ts'

/** Characters that are read at once, which takes less than 2 ms: other requests are served in between. */
const SLICE_LENGTH = 256 << 10

/** Yields the rows after a position up to the end of the backup, as frames. */
export async function* readRows(log: StoredLog, after: number): AsyncGenerator<Buffer> {
  for (let at = after; at < log.position;) {
    const rows = log.rowsAfter(at, SLICE_LENGTH)
    const last = rows.at(-1)
    if (!last) return
    yield Buffer.concat(rows.map(frameOf))
    at = last.first + last.count - 1
    await nextTurn()
  }
}
