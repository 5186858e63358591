import { ServiceError } from '../../client/index.ts'
import { isReachable } from '../frame/api.ts'
import type { PageProps } from '../frame/page.ts'
import { linkTo, param, setQuery } from '../frame/router.ts'
import { Choice } from '../parts/fields.tsx'
import { Copy, Empty, Failure, countText } from '../parts/texts.tsx'
import { EventList } from './stream/eventList.tsx'
import { type Followed, useTail } from './stream/useTail.ts'

const LIST = 'events'

/** One stream, live: the texts that its functions emit, or its events with their positions. */
export const Stream = ({ params: { stream_id = '' } }: PageProps) => {
  const followed = useTail(stream_id, param('from') || 'start')
  const { tail, error } = followed
  const types = [...tail.texts.keys()]
  const show = param('show') || types[0] || LIST
  const isList = show === LIST || !tail.texts.has(show)
  return (
    <>
      <div class="heading">
        <h1>Stream</h1>
        <State followed={followed} />
      </div>
      <p>
        <code>{stream_id}</code> <Copy text={stream_id} />{' '}
        <a href={linkTo('/runs', { stream: stream_id })}>Runs of this stream</a>
      </p>
      <div class="toolbar" role="toolbar" aria-label="This stream">
        <Choice
          label="Show"
          isInline
          value={isList ? LIST : show}
          options={[[LIST, 'Events'], ...types.map((type) => [type, `Text of ${type}`] as const)]}
          onChange={(value) => setQuery({ show: value }, { replace: true })}
        />
        {!error && <Pause followed={followed} />}
        {param('from') && (
          <button type="button" onClick={() => setQuery({ from: '' })}>
            Follow from the start
          </button>
        )}
      </div>
      {error && <Problem error={error} retry={followed.continue} />}
      {!error && tail.count === 0 && <Nothing followed={followed} />}
      {isList ? (
        tail.count > 0 && <EventList tail={tail} />
      ) : (
        <pre class="running" tabIndex={0} role="region" aria-label={`Text of ${show}`}>
          {tail.texts.get(show)}
        </pre>
      )}
    </>
  )
}

const State = ({ followed: { state, tail } }: { readonly followed: Followed }) => {
  const text = {
    connecting: 'Connecting…',
    live: 'Following',
    complete: 'Complete: nothing in it is running',
    failed: 'Not followed',
  }[state]
  return (
    <span class="hint" role="status">
      {state !== 'complete' && !isReachable.value ? 'Interrupted. It continues after its last event.' : text}
      {tail.count > 0 && `, ${countText(tail.count, 'event')}`}
    </span>
  )
}

const Pause = ({ followed: { isPaused, hidden } }: { readonly followed: Followed }) => (
  <>
    <button
      type="button"
      title={isPaused.value ? 'Shows what arrived meanwhile' : 'Keeps the view as it is; nothing is lost'}
      onClick={() => (isPaused.value = !isPaused.value)}
    >
      {isPaused.value ? 'Continue' : 'Pause'}
    </button>
    {isPaused.value && (
      <span class="hint" role="status">
        {countText(hidden, 'new event')}
      </span>
    )}
  </>
)

const Problem = ({ error, retry }: { readonly error: Error; readonly retry: () => void }) =>
  error instanceof ServiceError && (error.status === 404 || error.status === 400) ? (
    <Empty>
      There is no such stream in this environment. <a href={linkTo('/streams')}>Streams</a>
    </Empty>
  ) : (
    <Failure error={error} retry={retry} />
  )

const Nothing = ({ followed: { state } }: { readonly followed: Followed }) =>
  state === 'complete' ? (
    <Empty>No function has run in this stream since this position.</Empty>
  ) : (
    <p class="hint">Nothing has arrived yet.</p>
  )
