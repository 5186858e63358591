import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Run, RunInput } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo, navigate } from '../../frame/router.ts'
import { refusalOf } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { fieldJson, JsonField, type JsonText, useJsonText } from '../../parts/jsonField.tsx'
import { Failure, Loading } from '../../parts/texts.tsx'
import { canCancel } from '../runs/bulkActions.tsx'

/** Replay, replay with edited input, and cancel. */
export const RunActions = ({ run }: { readonly run: Run }) => {
  const { run_id } = run
  return (
    <div class="toolbar" role="toolbar" aria-label="This run">
      <Action
        label="Replay"
        does="Runs the function again with the same input, on the build that is deployed now."
        refusal={refusalFor(run, 'svc:replay')}
        run={async (idempotencyKey) => {
          const { event_id } = await api.request('POST /v1/runs/{run_id}/replay', {
            path: { run_id },
            idempotencyKey,
          })
          return (
            <>
              The replay was requested. <a href={linkTo('/runs', { event: event_id })}>Show its run</a>
            </>
          )
        }}
      />
      <EditedReplay run={run} />
      <Action
        label="Cancel"
        does="Ends the run, and its retry if it waits for one. A run that has ended does not change."
        isDangerous
        asks
        refusal={canCancel(run) ? refusalFor(run, 'svc:cancel') : endOf(run)}
        run={async (idempotencyKey) => {
          await api.request('POST /v1/runs/{run_id}/cancel', { path: { run_id }, idempotencyKey })
          return 'The cancellation was requested.'
        }}
      />
    </div>
  )
}

const endOf = ({ retried_by }: Run): string =>
  retried_by === null ? 'The run has ended' : 'This attempt has ended. Cancel the next attempt on its page'

const refusalFor = ({ fn }: Run, event_type: string): string | undefined => {
  if (fn === null && event_type !== 'svc:cancel') return 'Evaluated code cannot be replayed'
  return refusalOf('event', 'create', event_type)
}

/** Calls the function with the input after the reader has changed it. */
const EditedReplay = ({ run }: { readonly run: Run }) => {
  const { run_id, fn, project_id } = run
  const input = useSignal<RunInput | null>(null)
  const json = useJsonText('Input', '')

  const call = async (idempotencyKey: string, isSame: () => boolean) => {
    if (!input.value || fn === null) throw new Error('The input is not loaded yet')
    const args = argsOf(input.value, json)
    const { event_id } = await api.callWith(fn, args, { project: project_id, idempotencyKey })
    const to = linkTo('/runs', { event: event_id })
    if (isSame()) navigate(to)
    return (
      <>
        The function was called with the edited input. <a href={to}>Show its run</a>
      </>
    )
  }

  return (
    <Action
      label="Replay with edited input"
      does="Calls the function with the input below, on the build that is deployed now. No other function receives it."
      refusal={
        refusalFor(run, 'svc:call') ?? (run.run_type === 'event' ? refusalOf('event', 'read') : undefined)
      }
      onOpen={() => (input.value = null)}
      run={call}
    >
      <EditedInput run_id={run_id} input={input} json={json} />
    </Action>
  )
}

interface InputProps {
  readonly run_id: string
  /** The input that the run received, when it is loaded. */
  readonly input: Signal<RunInput | null>
  readonly json: JsonText
}

const EditedInput = ({ run_id, input, json }: InputProps) => {
  const loaded = useLoaded(
    (signal) => api.request('GET /v1/runs/{run_id}/input', { path: { run_id }, signal }),
    [run_id],
  )
  useEffect(() => {
    if (!loaded.data || input.peek()) return // what the reader has written is kept
    input.value = loaded.data
    json.problem.value = ''
    json.text.value = fieldJson(loaded.data.value)
  }, [loaded.data])
  if (!input.value) return loaded.error ? <Failure error={loaded.error} retry={loaded.reload} /> : <Loading />
  return (
    <>
      {input.value.cleared && <p class="hint">The input is no longer stored: write one.</p>}
      {input.value.kind === 'webhook' && (
        <p class="hint">Secrets in the request are masked as ***. Replace them if the function needs them.</p>
      )}
      <JsonField label="Input as JSON" rows={14} json={json} />
    </>
  )
}

/** A call has a list of arguments; other functions receive one event or request. */
const argsOf = ({ kind, event }: RunInput, { read, readList }: JsonText): readonly unknown[] => {
  if (kind === 'args') return readList()
  if (kind === 'webhook') return [read()]
  return [event ? { ...event, data: read() } : { type: 'svc:schedule', data: read() }]
}
