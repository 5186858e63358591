/**
 * What may follow one prefix: texts in their order, from one place to another, of which the first `done` bytes have been found.
 * The time of a search depends on the logarithm of their number.
 */
export interface Rests {
  readonly texts: readonly Buffer[]
  readonly from: number
  readonly to: number
  readonly done: number
}

export const NO_RESTS: Rests = { texts: [], from: 0, to: 0, done: 0 }

export const isEmpty = ({ from, to }: Rests): boolean => from >= to

/** The same texts and another one. */
export const withRest = (rests: Rests, rest: Buffer): Rests => {
  const place = placeAfter(rests, rest, 0, rest.length)
  if (rests.texts[place - 1]?.equals(rest)) return rests
  const texts = rests.texts.toSpliced(place, 0, rest)
  return { texts, from: 0, to: texts.length, done: 0 }
}

/** The most bytes from `at` on with which one of the texts continues. */
export const longestOf = (rests: Rests, bytes: Buffer, at: number, to: number): number => {
  if (isEmpty(rests)) return 0
  const place = placeAfter(rests, bytes, at, to)
  // In order, no other text has more in common with the bytes than these two.
  return Math.max(commonLength(rests, place - 1, bytes, at, to), commonLength(rests, place, bytes, at, to))
}

/** The texts that contain all bytes from `at` to `to`, and go on. */
export const remaining = (rests: Rests, bytes: Buffer, at: number, to: number): Rests => ({
  texts: rests.texts,
  from: placeAfter(rests, bytes, at, to),
  to: placeAfter(rests, bytes, at, to, { withBegun: true }),
  done: rests.done + to - at,
})

/** The place of the first text that sorts after the bytes; `withBegun`: also after all texts that begin with them. */
const placeAfter = (
  { texts, from, to: last, done }: Rests,
  bytes: Buffer,
  at: number,
  to: number,
  { withBegun = false } = {},
): number => {
  let [low, high] = [from, last]
  while (low < high) {
    const middle = (low + high) >>> 1
    const text = texts[middle] as Buffer
    const end = withBegun ? Math.min(text.length, done + to - at) : text.length
    if (bytes.compare(text, done, end, at, to) < 0) high = middle
    else low = middle + 1
  }
  return low
}

const commonLength = (
  { texts, from, to: last, done }: Rests,
  place: number,
  bytes: Buffer,
  at: number,
  to: number,
): number => {
  const text = texts[place]
  if (text === undefined || place < from || place >= last) return 0
  const most = Math.min(text.length - done, to - at)
  let length = 0
  while (length < most && text[done + length] === bytes[at + length]) length++
  return length
}
