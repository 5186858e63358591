import { durationText } from '../../parts/durationText.ts'
import type { Datum, LeftOut } from './emittedData.ts'

/** The places on the time axis; data at one place share a mark, so that any number of them is one shape. */
const PLACES = 1000

/** The time axis of the picture. `from` is in milliseconds since 1970, `length` in milliseconds. */
export interface Axis {
  readonly from: number
  readonly length: number
}

const placeOf = ({ from, length }: Axis, at: number): number =>
  Math.min(PLACES, Math.max(0, Math.round(((at - from) / length) * PLACES)))

interface Props {
  readonly axis: Axis
  /** What one run emitted, the oldest first. */
  readonly data: readonly Datum[]
  /** Its earlier data, which the page does not keep. */
  readonly leftOut: LeftOut | undefined
  readonly chosen: Datum | undefined
  readonly onChoose: (datum: Datum) => void
}

/**
 * The data of a run as marks on the time axis, and a dashed line for the part that is left out. A click chooses the nearest;
 * the slider below chooses with the keyboard.
 */
export const Marks = ({ axis, data, leftOut, chosen, onChoose }: Props) => {
  if (data.length === 0 && !leftOut) return null
  const places = [...new Set(data.map(({ at }) => placeOf(axis, at)))]
  const choose = ({ currentTarget, clientX }: MouseEvent & { readonly currentTarget: Element }): void => {
    const { left, width } = currentTarget.getBoundingClientRect()
    const found = nearest(data, axis.from + ((clientX - left) / width) * axis.length)
    if (found) onChoose(found)
  }
  return (
    <svg
      class="marks"
      viewBox={`0 0 ${PLACES} 1`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Emitted data: ${[keptText(axis, data), leftOutText(leftOut)].filter(Boolean).join('; ')}`}
      onClick={choose}
    >
      {leftOut && (
        <path class="left-out" d={`M${placeOf(axis, leftOut.from)} .5H${placeOf(axis, leftOut.to) + 1}`} />
      )}
      <path d={places.map((place) => `M${place} 0V1`).join('')} />
      {chosen && <path class="chosen" d={`M${placeOf(axis, chosen.at)} 0V1`} />}
    </svg>
  )
}

const keptText = (axis: Axis, data: readonly Datum[]): string => {
  const [first, last] = [data[0], data.at(-1)]
  if (!first || !last) return ''
  const [begin, end] = [first, last].map(({ at }) => durationText(Math.max(0, at - axis.from)))
  return `${data.length.toLocaleString('en')}, ${begin === end ? `at ${begin}` : `from ${begin} to ${end}`}`
}

const leftOutText = (leftOut: LeftOut | undefined): string =>
  leftOut ? `${leftOut.count.toLocaleString('en')} earlier are left out` : ''

const nearest = (data: readonly Datum[], at: number): Datum | undefined =>
  data.length === 0
    ? undefined
    : data.reduce((best, datum) => (Math.abs(datum.at - at) < Math.abs(best.at - at) ? datum : best))
