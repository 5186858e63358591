import type { RunInput } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo } from '../../frame/router.ts'
import { may } from '../../frame/session.ts'
import { Json } from '../../parts/json.tsx'
import { Lacking } from '../../parts/lacking.tsx'
import { Shown } from '../../parts/shown.tsx'
import { Time } from '../../parts/texts.tsx'

/** The input that the function received. */
export const Input = ({ run_id }: { readonly run_id: string }) => {
  const input = useLoaded(
    (signal) => api.request('GET /v1/runs/{run_id}/input', { path: { run_id }, signal }),
    [run_id, may('event', 'read')],
  )
  return <Shown of={input}>{(data) => <InputOf input={data} run_id={run_id} />}</Shown>
}

interface Props {
  readonly input: RunInput
  readonly run_id: string
}

const InputOf = ({ input: { kind, event, value, cleared }, run_id }: Props) => {
  if (cleared) return <p class="hint">The input is no longer stored: its retention period has ended.</p>
  if (kind === 'event' && !event) return <Lacking type="event" action="read" />
  return (
    <>
      {event && (
        <p>
          Event <a href={linkTo('/events', { event: event.id })}>{event.type}</a>, published{' '}
          <Time at={event.timestamp} />
        </p>
      )}
      <Json value={value} name={`input of ${run_id}`} />
    </>
  )
}
