import { useSignal } from '@preact/signals'
import type { CalledFunction, ProjectFunction } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { linkTo } from '../../frame/router.ts'
import { refusalOf } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { Checkbox } from '../../parts/fields.tsx'
import { fieldJson, JsonField, useJsonText } from '../../parts/jsonField.tsx'
import { Json } from '../../parts/json.tsx'
import { ErrorOf } from '../run/errorOf.tsx'

/** Seconds that a call waits for its result. */
const WAIT_S = 30

export interface Called {
  readonly fn: string
  readonly reply: CalledFunction
}

/** Handlers receive one event; other functions any arguments. */
const firstArgs = ({ on_event }: ProjectFunction): string =>
  on_event === undefined ? '[]' : fieldJson([{ type: on_event, data: {} }])

interface Props {
  readonly project: string
  readonly of: ProjectFunction
  readonly onCalled: (called: Called) => void
}

/** Calls a function with arguments as JSON. */
export const CallFunction = ({ project, of, onCalled }: Props) => {
  const { fn } = of
  const json = useJsonText('Arguments', firstArgs(of))
  const isWaiting = useSignal(true)
  return (
    <Action
      label="Call"
      does={`Starts a run of ${fn} on the deployed build. No other function receives the call.`}
      refusal={refusalOf('event', 'create', 'svc:call')}
      onOpen={() => (json.problem.value = '')}
      run={async (idempotencyKey) => {
        const args = json.readList()
        const reply = await api.request('POST /v1/functions/{project}/{ref}', {
          path: { project, ref: fn },
          query: { wait: isWaiting.value ? WAIT_S : 0 },
          body: { args },
          idempotencyKey,
        })
        onCalled({ fn, reply })
        return (
          <>
            {fn} was called. <a href={linkTo(`/runs/${reply.run_id}`)}>Show its run</a>
          </>
        )
      }}
    >
      <JsonField label="Arguments as a JSON list" rows={8} json={json} />
      <Checkbox
        label={`Wait up to ${WAIT_S} seconds for the result`}
        isChecked={isWaiting.value}
        onChange={(isChecked) => (isWaiting.value = isChecked)}
      />
    </Action>
  )
}

/** The reply to the last call on this page. */
export const LastCall = ({ called: { fn, reply } }: { readonly called: Called }) => {
  const { run_id, status, result, error } = reply
  return (
    <section aria-labelledby="last-call">
      <h2 id="last-call">Call of {fn}</h2>
      <p>
        {status === null ? 'The run has not ended yet.' : `The run ${ENDS[status]}.`}{' '}
        <a href={linkTo(`/runs/${run_id}`)}>Show its run</a>
      </p>
      {error && <ErrorOf error={error} />}
      {status === 'succeeded' && <Json value={result} name={`result of ${fn}`} />}
    </section>
  )
}

const ENDS = { succeeded: 'succeeded', failed: 'failed', cancelled: 'was cancelled' } as const
