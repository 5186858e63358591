import { api } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo } from '../../frame/router.ts'
import { Json } from '../../parts/json.tsx'
import { Failure, Time } from '../../parts/texts.tsx'

/** The input that the function received. */
export const Input = ({ run_id }: { readonly run_id: string }) => {
  const input = useLoaded(
    (signal) => api.request('GET /v1/runs/{run_id}/input', { path: { run_id }, signal }),
    [run_id],
  )
  if (input.error) return <Failure error={input.error} retry={input.reload} />
  if (!input.data) return <p class="hint">Loading…</p>
  const { event, value, cleared } = input.data
  if (cleared) return <p class="hint">The input is no longer stored: its retention period has ended.</p>
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
