import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Run, RunInput } from '../../../client/index.ts'
import { randomKey } from '../../../client/randomKey.ts'
import { api, signIns, textOf } from '../../frame/api.ts'
import { linkTo, navigate } from '../../frame/router.ts'
import { may } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { JsonField, type JsonText, useJsonText } from '../../parts/jsonField.tsx'
import { Alert } from '../../parts/texts.tsx'
import { canCancel } from '../runs/bulkActions.tsx'

/** Replay, replay with edited input, and cancel. */
export const RunActions = ({ run }: { readonly run: Run }) => {
  const { run_id } = run
  const key = useRef(randomKey())
  const send = async (operation: 'POST /v1/runs/{run_id}/replay' | 'POST /v1/runs/{run_id}/cancel') => {
    const idempotencyKey = key.current
    const event = await api.request(operation, { path: { run_id }, idempotencyKey })
    key.current = randomKey() // a repetition after a failure does nothing twice
    return event
  }

  return (
    <div class="toolbar" role="toolbar" aria-label="This run">
      <Action
        label="Replay"
        does="Runs the function again with the same input, on the build that is deployed now."
        refusal={refusalOf(run, 'svc:replay')}
        run={async () => {
          const { event_id } = await send('POST /v1/runs/{run_id}/replay')
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
        refusal={canCancel(run) ? refusalOf(run, 'svc:cancel') : 'The run has ended'}
        run={async () => {
          await send('POST /v1/runs/{run_id}/cancel')
          return 'The cancellation was requested.'
        }}
      />
    </div>
  )
}

const refusalOf = ({ fn }: Run, event_type: string): string | undefined => {
  if (fn === null && event_type !== 'svc:cancel') return 'Evaluated code cannot be replayed'
  return may('event', 'create', event_type) ? undefined : `The key lacks event:${event_type} create`
}

/** Calls the function with the input after the reader has changed it. */
const EditedReplay = ({ run }: { readonly run: Run }) => {
  const { run_id, fn, project_id } = run
  const input = useSignal<RunInput | null>(null)
  const json = useJsonText('Input', '')
  const failure = useSignal('')

  const load = async (): Promise<void> => {
    failure.value = json.problem.value = ''
    try {
      input.value = await api.request('GET /v1/runs/{run_id}/input', { path: { run_id } })
      json.text.value = JSON.stringify(input.value.value, null, 2)
    } catch (error) {
      failure.value = textOf(error)
    }
  }

  useEffect(() => {
    if (failure.value !== '') void load() // the session had ended
  }, [signIns.value])

  const call = async () => {
    if (!input.value || fn === null) throw new Error('The input is not loaded yet')
    const args = argsOf(input.value, json)
    const started = api.callWith(fn, args, { project: project_id })
    const { event_id } = await started
    navigate(linkTo('/runs', { event: event_id }))
    return 'The function was called with the edited input.'
  }

  return (
    <Action
      label="Replay with edited input"
      does="Calls the function with the input below, on the build that is deployed now. No other function receives it."
      refusal={refusalOf(run, 'svc:call')}
      onOpen={() => void load()}
      run={call}
    >
      <Alert text={failure.value} />
      {input.value?.kind === 'webhook' && (
        <p class="hint">Secrets in the request are masked as ***. Replace them if the function needs them.</p>
      )}
      <JsonField label="Input as JSON" rows={14} json={json} />
    </Action>
  )
}

/** A call has a list of arguments; other functions receive one event or request. */
const argsOf = ({ kind, event }: RunInput, { read, readList }: JsonText): readonly unknown[] => {
  if (kind === 'args') return readList()
  if (kind === 'webhook') return [read()]
  return [event ? { ...event, data: read() } : { type: 'svc:schedule', data: read() }]
}
