import { useEffect } from 'preact/hooks'
import type { Run, RunLogs } from '../../../client/index.ts'
import { api, isGone } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { useRepeat } from '../../frame/repeat.ts'
import { Shown } from '../../parts/shown.tsx'

/** The service stores the output of a running function once a second. */
const EVERY_MS = 1000

/** In the time zone of the reader, as all times of the dashboard. */
const clockTime = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

interface Props {
  readonly run: Run
  readonly onGone: () => void
}

/** Standard output and standard error, live while the run continues. */
export const Logs = ({ run: { run_id, stop_time }, onGone }: Props) => {
  const logs = useLoaded((signal) => api.runs.logs(run_id, { signal }), [run_id, stop_time])
  useRepeat(logs.reload, EVERY_MS, stop_time === null)
  useEffect(() => {
    if (isGone(logs.error)) onGone()
  }, [logs.error])
  return <Shown of={logs}>{({ lines }) => <Output lines={lines} />}</Shown>
}

const Output = ({ lines }: Pick<RunLogs, 'lines'>) =>
  lines.length === 0 ? (
    <p class="hint">The function wrote nothing.</p>
  ) : (
    <pre class="log" tabIndex={0} role="log" aria-label="Output of the run">
      {lines.map(({ timestamp, source, text }, index) => (
        <span key={index} class={source}>
          <time dateTime={timestamp} title={timestamp}>
            {clockTime.format(Date.parse(timestamp))}
          </time>{' '}
          {text}
          {'\n'}
        </span>
      ))}
    </pre>
  )
