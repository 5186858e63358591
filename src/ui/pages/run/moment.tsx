import { durationText } from '../../parts/durationText.ts'
import type { Datum } from './emittedData.ts'

interface Props {
  /** The oldest first; at least one. */
  readonly data: readonly Datum[]
  readonly chosen: Datum
  /** The beginning of the time axis, in milliseconds since 1970. */
  readonly from: number
  readonly onChoose: (datum: Datum) => void
}

/** One datum of the time axis; the slider moves through all of them. */
export const Moment = ({ data, chosen, from, onChoose }: Props) => {
  const number = data.indexOf(chosen) + 1
  const place = `${number.toLocaleString('en')} of ${data.length.toLocaleString('en')}`
  const after = `after ${durationText(Math.max(0, chosen.at - from))}`
  return (
    <div class="moment">
      <label class="slider">
        Emitted data, {place}
        <input
          type="range"
          min={1}
          max={data.length}
          value={number}
          aria-valuetext={`${place}, ${after}: ${chosen.type} ${chosen.text.slice(0, 100)}`}
          onInput={({ currentTarget }) => {
            const datum = data[currentTarget.valueAsNumber - 1]
            if (datum) onChoose(datum)
          }}
        />
      </label>
      <p>
        <strong>{chosen.type}</strong> <span class="hint">{after}</span> <code>{chosen.text}</code>
      </p>
    </div>
  )
}
