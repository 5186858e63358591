import { useSignal } from '@preact/signals'
import { isoOf } from '../../../clock.ts'
import { api } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { param, setQuery } from '../../frame/router.ts'
import { may, operator } from '../../frame/session.ts'
import { serviceNow } from '../../frame/serviceClock.ts'
import { Choice } from '../../parts/fields.tsx'
import { Filters, isoOfField, TextFilter } from '../../parts/filters.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Differences, PAST_OFFSET } from './differences.tsx'
import { KINDS } from './resources.ts'

/** The time of the oldest change, which is where the past begins. */
const useOldest = () =>
  useLoaded(async (signal) => {
    if (!may('env', 'read')) return null
    const { data } = await api.request('GET /v1/audit', { query: { after: 'start', limit: 1 }, signal })
    return data[0]?.time ?? null
  }, [])

/** The state at a chosen time beside the present one. */
export const TimeTravel = () => {
  const oldest = useOldest()
  const as_of = param('as_of')
  const show = param('show')
  const kind = KINDS[Object.hasOwn(KINDS, show) ? show : 'projects']
  return (
    <section aria-labelledby="past">
      <h2 id="past">The state at another time</h2>
      <Filters label="Time and resource">
        <Choice
          label="Show"
          value={show || 'projects'}
          options={Object.entries(KINDS)
            .filter(([, { isOperators }]) => !isOperators || operator.value)
            .map(([name, { text }]) => [name, text] as const)}
          onChange={(value) => setQuery({ show: value, id: '', [PAST_OFFSET]: '' })}
        />
        {kind?.chosen !== undefined && <TextFilter key={kind.chosen} label={kind.chosen} name="id" />}
        <label>
          As of
          <input
            type="datetime-local"
            step={1}
            value={as_of && localOf(as_of)}
            onChange={({ currentTarget: { value } }) =>
              setQuery({ as_of: isoOfField(value), [PAST_OFFSET]: '' })
            }
          />
        </label>
        {as_of && (
          <button type="button" class="plain" onClick={() => setQuery({ as_of: '', [PAST_OFFSET]: '' })}>
            Show the present only
          </button>
        )}
      </Filters>
      <Shown of={oldest} loading={null}>
        {(time) => time && <Slider key={as_of} from={Date.parse(time)} as_of={as_of} />}
      </Shown>
      {kind && <Differences kind={kind} />}
    </section>
  )
}

/** A time as the field shows it: that of the reader's time zone, without its name. */
const localOf = (iso: string): string => {
  const ms = Date.parse(iso)
  if (Number.isNaN(ms)) return ''
  return isoOf(ms - new Date(ms).getTimezoneOffset() * 60_000).slice(0, 19)
}

const Slider = ({ from, as_of }: { readonly from: number; readonly as_of: string }) => {
  const end = useSignal(Math.max(serviceNow(), from + 1))
  const at = useSignal(Math.min(Date.parse(as_of) || end.value, end.value))
  const text = new Date(at.value).toLocaleString()
  return (
    <label class="slider">
      Time in the log: {text}
      <input
        type="range"
        min={from}
        max={end.value}
        step={1}
        value={at.value}
        aria-valuetext={text}
        onInput={({ currentTarget }) => (at.value = currentTarget.valueAsNumber)}
        onChange={({ currentTarget: { valueAsNumber } }) =>
          setQuery({
            as_of: valueAsNumber >= end.value ? '' : isoOf(valueAsNumber),
            [PAST_OFFSET]: '',
          })
        }
      />
    </label>
  )
}
