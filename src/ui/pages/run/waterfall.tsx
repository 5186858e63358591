import { type Signal, useSignal } from '@preact/signals'
import type { Run, RunTrace, TraceNode } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useRefresh } from '../../frame/live.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo } from '../../frame/router.ts'
import { serviceNow } from '../../frame/serviceClock.ts'
import { may } from '../../frame/session.ts'
import { Lacking } from '../../parts/lacking.tsx'
import { Shown } from '../../parts/shown.tsx'
import { durationText } from '../../parts/durationText.ts'
import { type Axis, Marks } from './marks.tsx'
import { Moment } from './moment.tsx'
import { type Datum, type Emitted, KEPT } from './emittedData.ts'

/** One line of the picture: an event, or a run with its waiting time. All times are milliseconds since 1970. */
interface Line {
  readonly id: string
  readonly depth: number
  readonly label: string
  readonly href: string
  readonly status: string
  readonly from: number
  readonly startsAt: number
  readonly to: number
}

/** The events and runs around a run as bars over time: event, waiting, start, attempts, child runs and emitted data. */
export const Waterfall = ({
  run: { run_id, stop_time },
  emitted,
}: {
  readonly run: Run
  readonly emitted: Signal<Emitted>
}) => {
  const isPermitted = may('event', 'read')
  const trace = useLoaded(
    async (signal) =>
      isPermitted ? api.request('GET /v1/runs/{run_id}/trace', { path: { run_id }, signal }) : undefined,
    [run_id, stop_time],
  )
  useRefresh(['run:', 'event:'], () => {
    if (trace.data && isOpen(trace.data.root)) trace.reload()
  })
  return (
    <section aria-labelledby="trace">
      <h2 id="trace">Trace</h2>
      {!isPermitted && <Lacking type="event" action="read" />}
      <Shown of={trace} loading={null}>
        {(data) => data && <Picture trace={data} run_id={run_id} emitted={emitted} />}
      </Shown>
    </section>
  )
}

const childrenOf = ({ children }: TraceNode): readonly TraceNode[] => children as readonly TraceNode[]

const isOpen = (node: TraceNode): boolean =>
  node.run?.status === 'running' || node.run?.status === 'pending_retry' || childrenOf(node).some(isOpen)

const linesOf = (node: TraceNode, depth = 0): Line[] => [
  ...lineOf(node, depth),
  ...childrenOf(node).flatMap((child) => linesOf(child, depth + 1)),
]

const lineOf = ({ event, run }: TraceNode, depth: number): Line[] => {
  if (event) {
    const at = Date.parse(event.event_time)
    const href = linkTo('/events', { event: event.event_id })
    return [
      {
        id: event.event_id,
        depth,
        label: event.event_type,
        href,
        status: 'event',
        from: at,
        startsAt: at,
        to: at,
      },
    ]
  }
  if (!run) return []
  const { run_id, fn, attempt, status, requested_at, start_time, stop_time } = run
  return [
    {
      id: run_id,
      depth,
      label: (fn ?? 'Evaluated code') + (attempt > 1 ? `, attempt ${attempt}` : ''),
      href: linkTo(`/runs/${run_id}`),
      status,
      from: Date.parse(requested_at),
      startsAt: Date.parse(start_time),
      to: stop_time ? Date.parse(stop_time) : serviceNow(),
    },
  ]
}

interface PictureProps {
  readonly trace: RunTrace
  readonly run_id: string
  readonly emitted: Signal<Emitted>
}

const Picture = ({ trace: { root, cut }, run_id, emitted }: PictureProps) => {
  const chosen_id = useSignal('')
  const lines = linesOf(root)
  const shown = new Set(lines.map(({ id }) => id))
  const data = emitted.value.data.filter((datum) => shown.has(datum.run_id))
  const { leftOut } = emitted.value
  const byRun = Map.groupBy(data, (datum) => datum.run_id)
  const chosen = data.find(({ id }) => id === chosen_id.value) ?? data.at(-1)
  const choose = ({ id }: Datum): void => void (chosen_id.value = id)
  const axis = axisOf(lines, data)
  return (
    <>
      <ol class="waterfall">
        {lines.map((line) => (
          <li key={line.id} aria-current={line.id === run_id ? 'true' : undefined}>
            <a
              href={line.href}
              class="cut"
              title={line.label}
              style={{ paddingInlineStart: `${line.depth}rem` }}
            >
              {line.label}
            </a>
            <div class="bars" title={barText(line)}>
              <Bars line={line} axis={axis} />
              <Marks
                axis={axis}
                data={byRun.get(line.id) ?? []}
                leftOut={leftOut.get(line.id)}
                chosen={chosen?.run_id === line.id ? chosen : undefined}
                onChoose={choose}
              />
            </div>
            <span class="hint">
              {line.status === 'event' ? 'event' : durationText(line.to - line.startsAt)}
            </span>
          </li>
        ))}
      </ol>
      <p class="hint">
        {durationText(axis.length)} from the first to the last. Light bars show waiting
        {data.length > 0 && ', and marks below a bar show emitted data'}.
        {leftOut.size > 0 &&
          ` The page keeps the newest ${KEPT.toLocaleString('en')} data of the stream; a dashed line is the time of earlier data.`}
        {cut && ' The tree is larger: its deepest parts are left out.'}
      </p>
      {chosen && <Moment data={data} chosen={chosen} from={axis.from} onChoose={choose} />}
    </>
  )
}

const axisOf = (lines: readonly Line[], data: readonly Datum[]): Axis => {
  const from = Math.min(...lines.map((line) => line.from))
  const to = Math.max(...lines.map((line) => line.to), data.at(-1)?.at ?? 0)
  return { from, length: Math.max(1, to - from) }
}

const Bars = ({
  line: { status, from, startsAt, to },
  axis,
}: {
  readonly line: Line
  readonly axis: Axis
}) => {
  const percent = (ms: number): string => `${(Math.max(0, ms) / axis.length) * 100}%`
  return (
    <>
      {startsAt > from && (
        <span
          class="bar waiting"
          style={{ insetInlineStart: percent(from - axis.from), width: percent(startsAt - from) }}
        />
      )}
      <span
        class={`bar ${status}`}
        style={{ insetInlineStart: percent(startsAt - axis.from), width: percent(to - startsAt) }}
      />
    </>
  )
}

const barText = ({ label, status, from, startsAt, to }: Line): string =>
  status === 'event'
    ? `${label}: event`
    : `${label}: waited ${durationText(Math.max(0, startsAt - from))}, ran ${durationText(to - startsAt)}, ${status}`
