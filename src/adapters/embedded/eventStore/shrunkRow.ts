import type { StoredRow } from '../../../ports/storedLog.ts'
import { rowText } from './checksum.ts'
import { type Element, elementTextsIn } from './logRows.ts'

/** An event that a row loses, or what is left of one. */
export interface Removed {
  readonly stream: string
  readonly revision: number
  readonly position: number
  /** Whether it is the newest of its stream, so that its stream and revision stay. */
  readonly isNewest: boolean
}

/** Returns a row without events, at the same positions: they become numbers, and the checksum is computed again. */
export const withoutThem = (
  { first, count, text }: StoredRow,
  elements: readonly Element[],
  gone: readonly Removed[],
): StoredRow => {
  const goneAt = new Map(gone.map((each) => [each.position, each]))
  const texts = elementTextsIn(text)
  const left: string[] = []
  let [position, holes] = [first, 0]
  const keep = (kept: string) => {
    if (holes > 0) left.push(String(holes))
    holes = 0
    left.push(kept)
  }
  for (const [i, element] of elements.entries()) {
    const here = typeof element === 'number' ? undefined : goneAt.get(position)
    if (typeof element === 'number') holes += element
    else if (!here) keep(texts[i] as string)
    else if (here.isNewest) keep(JSON.stringify([here.stream, here.revision]))
    else holes++
    position += typeof element === 'number' ? element : 1
  }
  if (holes > 0) left.push(String(holes))
  return { first, count, text: rowText(first, left, count) }
}
