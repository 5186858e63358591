import { isAppError } from '../errors.ts'
import type { Segment } from './manifest.ts'
import { checkedRows } from './readBackup.ts'
import type { RowFrame } from './rowFrames.ts'

/**
 * Whether the rows of a log are those of a segment, without events that were removed since the segment was copied. At least
 * one event, or the name that it left, must be in both: rows that lost everything prove nothing.
 */
export const continues = async (
  dir: string,
  segment: Segment,
  rows: AsyncIterable<RowFrame>,
): Promise<boolean> => {
  let proofs = 0
  const copied = checkedRows(dir, segment)
  try {
    for await (const row of rows) {
      const { value: earlier, done } = await copied.next()
      if (done) break
      if (earlier.first !== row.first || earlier.count !== row.count) return false
      const found = proofsIn(earlier, row)
      if (found === null) return false
      proofs += found
      if (row.first + row.count > segment.last) break
    }
  } catch (error) {
    if (error instanceof SyntaxError || isAppError(error, 'bad_request')) return false
    throw error
  } finally {
    await copied.return(undefined)
  }
  return proofs > 0
}

/** The number of elements that prove that two rows are of the same log; null if one contradicts it. */
const proofsIn = (earlier: RowFrame, later: RowFrame): number | null => {
  if (earlier.text.equals(later.text)) return earlier.count
  const before = placesIn(earlier)
  let proofs = 0
  for (const [position, [stream, revision, ...rest]] of placesIn(later)) {
    const known = before.get(position)
    if (!known || known[0] !== stream || known[1] !== revision) return null
    if (rest.length > 0 && JSON.stringify(known.slice(2)) !== JSON.stringify(rest)) return null
    proofs++
  }
  return proofs
}

/** The elements of a row by position: `[stream, revision, …]`; numbers count events that were removed. */
const placesIn = ({ first, text }: RowFrame): ReadonlyMap<number, readonly unknown[]> => {
  const places = new Map<number, readonly unknown[]>()
  let position = first
  for (const element of JSON.parse(text.toString('utf8')) as (number | readonly unknown[])[]) {
    if (typeof element === 'number') position += element
    else places.set(position++, element)
  }
  return places
}
