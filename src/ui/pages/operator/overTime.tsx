import type { Page } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { param, setQuery } from '../../frame/router.ts'
import { Facts } from '../../parts/facts.tsx'
import { Filters, TextFilter } from '../../parts/filters.tsx'
import { Json } from '../../parts/json.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Empty, Time } from '../../parts/texts.tsx'

interface ReplayedFact {
  readonly position: string
  readonly time: string
  readonly type: string
  readonly changes: unknown
  readonly state: unknown
}

type Source = { readonly resource: string } | { readonly stream: string }

/** The parameters of the URL: the resource that was entered, the stream of a link in the list, and the chosen fact. */
export const OVER_TIME = { resource: 'of', stream: 'stream', step: 'step' } as const

/** Anything in the log over time: a slider moves through its facts and shows the state after each. */
export const OverTime = () => {
  const [resource, stream] = [param(OVER_TIME.resource), param(OVER_TIME.stream)]
  return (
    <section aria-labelledby="over-time">
      <h2 id="over-time">A resource over time</h2>
      <Filters label="Resource over time">
        <TextFilter label="Id, path, key or domain" name={OVER_TIME.resource} />
      </Filters>
      {resource === '' && stream === '' ? (
        <Empty command="npx svc audit replay --resource ID">
          Enter the id of an organization, a key, a project or a run, the path of a file, the key of a secret
          or a domain, or follow a link of the list below.
        </Empty>
      ) : (
        <Steps key={resource || stream} of={resource === '' ? { stream } : { resource }} />
      )}
    </section>
  )
}

interface Step {
  readonly number: number
  readonly total: number
  readonly fact: ReplayedFact | undefined
}

const factAt = (of: Source, number: number, signal: AbortSignal): Promise<Page<ReplayedFact>> =>
  ask('GET /operator/audit/replay', { query: { ...of, limit: 1, offset: number - 1 }, signal })

/** The chosen fact; without one, or beyond the end, the last one. */
const stepAt = async (of: Source, wanted: number, signal: AbortSignal): Promise<Step> => {
  const found = await factAt(of, wanted || 1, signal)
  const { total } = found.pagination
  if (wanted > 0 && wanted <= total) return { number: wanted, total, fact: found.data[0] }
  const last = total > 1 ? await factAt(of, total, signal) : found
  return { number: total, total, fact: last.data[0] }
}

const Steps = ({ of }: { readonly of: Source }) => {
  const wanted = Math.max(0, Number.parseInt(param(OVER_TIME.step), 10) || 0)
  const step = useLoaded((signal) => stepAt(of, wanted, signal), [wanted])
  return <Shown of={step}>{(data) => <StepOf step={data} wanted={wanted} />}</Shown>
}

interface StepProps {
  readonly step: Step
  /** The number of the fact that the slider has chosen; 0 if none was. */
  readonly wanted: number
}

const StepOf = ({ step: { number, total, fact }, wanted }: StepProps) => {
  const place = `${number.toLocaleString('en')} of ${total.toLocaleString('en')}`
  return (
    <>
      <label class="slider">
        Fact {place}
        <input
          type="range"
          min={1}
          max={total}
          value={wanted === 0 ? number : Math.min(wanted, total)}
          aria-valuetext={`${place}${fact ? `: ${fact.type}` : ''}`}
          onInput={({ currentTarget: { value } }) => setQuery({ [OVER_TIME.step]: value }, { replace: true })}
        />
      </label>
      {fact && (
        <>
          <Facts of={{ Fact: fact.type, Time: <Time at={fact.time} />, Position: fact.position }} />
          <h3>What it changed</h3>
          <Json value={fact.changes} name={`changes of fact ${number}`} />
          <h3>The state after it</h3>
          <Json value={fact.state} name={`state after fact ${number}`} />
        </>
      )}
    </>
  )
}
