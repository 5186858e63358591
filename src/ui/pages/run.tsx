import type { Run as RunOf } from '../../client/index.ts'
import { ServiceError } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { live, type Update, useLive } from '../frame/live.ts'
import { useLoaded } from '../frame/load.ts'
import { useRepeat, useReturn } from '../frame/repeat.ts'
import { linkTo } from '../frame/router.ts'
import type { PageProps } from '../frame/page.ts'
import { Facts } from '../parts/facts.tsx'
import { Json } from '../parts/json.tsx'
import { Shown } from '../parts/shown.tsx'
import { durationText } from '../parts/durationText.ts'
import { Copy, Empty, Failure, Status, Time } from '../parts/texts.tsx'
import { EmittedData } from './run/emitted.tsx'
import { Linked } from './run/linked.tsx'
import { ErrorOf } from './run/errorOf.tsx'
import { Input } from './run/input.tsx'
import { Logs } from './run/logs.tsx'
import { RunActions } from './run/runActions.tsx'
import { useEmitted } from './run/useEmitted.ts'
import { Waterfall } from './run/waterfall.tsx'

/** The pause between two looks at a run that is not over, if no updates of it arrive. */
const LOOK_MS = 5000

/** One run: why it ran, what happened in it, and what it returned. */
export const Run = ({ params: { run_id = '' } }: PageProps) => {
  const run = useLoaded((signal) => api.runs.get(run_id, { signal }), [run_id])
  useLive((update) => {
    if (changes(update, run_id, run.data)) run.reload()
  })
  useReturn(run.reload)
  useRepeat(run.reload, LOOK_MS, live.value === 'off' && run.data?.stop_time === null)
  if (run.error && !run.data) return <Missing run_id={run_id} error={run.error} retry={run.reload} />
  return <Shown of={run}>{(data) => <Details run={data} onGone={run.reload} />}</Shown>
}

/** Whether an update is about a run; a busy environment has thousands about others. */
const changes = (update: Update, run_id: string, run: RunOf | undefined): boolean => {
  if (update.event === 'gap') return true
  if (!('run_id' in update.data)) return false
  const isRetry = run?.status === 'pending_retry' && update.data.stream_id === run.stream_id
  return isRetry || update.data.run_id === run_id
}

const Missing = ({
  run_id,
  error,
  retry,
}: {
  readonly run_id: string
  readonly error: Error
  readonly retry: () => void
}) => (
  <>
    <h1>Run</h1>
    {error instanceof ServiceError && error.status === 404 ? (
      <Empty>
        There is no run <code>{run_id}</code> in this environment. It may have been deleted with its retention
        period. <a href={linkTo('/runs')}>Runs</a>
      </Empty>
    ) : (
      <Failure error={error} retry={retry} />
    )}
  </>
)

const Details = ({ run, onGone }: { readonly run: RunOf; readonly onGone: () => void }) => {
  const emitted = useEmitted(run)
  return (
    <>
      <div class="heading">
        <h1>
          Run <span class="name">{run.fn ?? 'Evaluated code'}</span>
        </h1>
        <Status status={run.status} />
      </div>
      <RunActions run={run} />
      {run.error && <ErrorOf error={run.error} />}
      <FactsOf run={run} />
      <Why run={run} />
      <Waterfall run={run} emitted={emitted} />
      <section aria-labelledby="input">
        <h2 id="input">Input</h2>
        <Input run_id={run.run_id} />
      </section>
      <Result run={run} />
      <EmittedData run={run} emitted={emitted} />
      <section aria-labelledby="logs">
        <h2 id="logs">Logs</h2>
        <Logs run={run} onGone={onGone} />
      </section>
    </>
  )
}

const FactsOf = ({ run }: { readonly run: RunOf }) => (
  <Facts
    of={{
      Run: (
        <>
          <code>{run.run_id}</code> <Copy text={run.run_id} />
        </>
      ),
      Project: <a href={linkTo('/functions', { project: run.project_id })}>{run.project_name}</a>,
      Type: run.run_type,
      Attempt: (
        <>
          {run.attempt}{' '}
          {run.origin_run_id && <a href={linkTo('/runs', { chain: run.run_id })}>all attempts</a>}
        </>
      ),
      Waited: durationText(Math.max(0, Date.parse(run.start_time) - Date.parse(run.requested_at))),
      Started: <Time at={run.start_time} />,
      Duration: run.stop_time
        ? durationText(Date.parse(run.stop_time) - Date.parse(run.start_time))
        : 'It is running',
      Retry: run.retry_at && <Time at={run.retry_at} />,
      'Next attempt': run.retried_by && <RunLink run_id={run.retried_by} />,
      'Replay of': run.replay_of && <RunLink run_id={run.replay_of} />,
      Stream: <a href={linkTo(`/streams/${run.stream_id}`)}>{run.stream_id}</a>,
      Build: <a href={linkTo('/builds', { project: run.project_id })}>{run.build_id}</a>,
    }}
  />
)

const RunLink = ({ run_id }: { readonly run_id: string }) => <a href={linkTo(`/runs/${run_id}`)}>{run_id}</a>

const Why = ({ run: { run_id, event_id, status } }: { readonly run: RunOf }) => {
  const why = useLoaded(
    (signal) => api.request('GET /v1/runs/{run_id}/why', { path: { run_id }, signal }),
    [run_id, status],
  )
  return (
    <section aria-labelledby="why">
      <h2 id="why">Why did this run?</h2>
      <Shown of={why}>
        {(data) => (
          <ul>
            {[...data.why, data.outcome].map((sentence) => (
              <li key={sentence}>
                <Linked text={sentence} event_id={event_id} own={run_id} />
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  )
}

const Result = ({ run: { status, result, run_id } }: { readonly run: RunOf }) => {
  if (status !== 'succeeded') return null // the result of a failed run is its error
  return (
    <section aria-labelledby="result">
      <h2 id="result">Result</h2>
      <Json value={result ?? null} name={`result of ${run_id}`} />
    </section>
  )
}
