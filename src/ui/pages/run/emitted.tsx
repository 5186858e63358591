import type { Signal } from '@preact/signals'
import type { Run } from '../../../client/index.ts'
import { linkTo } from '../../frame/router.ts'
import { Alert } from '../../parts/texts.tsx'
import { type Datum, type Emitted, runningTexts } from './emittedData.ts'

/** The newest data that is listed; the page of the stream has all. */
const SHOWN = 100

interface Props {
  readonly run: Run
  readonly emitted: Signal<Emitted>
}

/** The data that the run emitted, live. Runs that emitted nothing show nothing. */
export const EmittedData = ({ run: { run_id, stream_id }, emitted }: Props) => {
  const { data, failure } = emitted.value
  const own = data.filter((datum) => datum.run_id === run_id)
  if (own.length === 0) return <Alert text={failure} />
  return (
    <section aria-labelledby="emitted">
      <h2 id="emitted">Emitted data</h2>
      <ol class="emitted">
        {runningTexts(own.slice(-SHOWN)).map((row) => (
          <Row key={row[0]?.id} of={row} />
        ))}
      </ol>
      {own.length > SHOWN && <p class="hint">The newest {SHOWN} are listed.</p>}
      <a href={linkTo(`/streams/${stream_id}`)}>Stream</a>
    </section>
  )
}

const Row = ({ of: row }: { readonly of: readonly Datum[] }) => {
  const [first] = row
  if (row.length > 1)
    return (
      <li>
        <strong>{first?.type}</strong> <span class="hint">{row.length} texts</span>
        <pre class="running" tabIndex={0} role="group" aria-label={`Text of ${first?.type}`}>
          {row.map(({ text }) => String(JSON.parse(text))).join('')}
        </pre>
      </li>
    )
  return (
    <li>
      <strong>{first?.type}</strong> <code class="cut">{first?.text}</code>
    </li>
  )
}
