import type { Signal } from '@preact/signals'
import type { Run } from '../../../client/index.ts'
import { linkTo } from '../../frame/router.ts'
import { Alert } from '../../parts/texts.tsx'
import type { Emitted } from './emittedData.ts'

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
        {own.slice(-SHOWN).map(({ id, type, text }) => (
          <li key={id}>
            <strong>{type}</strong> <code class="cut">{text}</code>
          </li>
        ))}
      </ol>
      {own.length > SHOWN && <p class="hint">The newest {SHOWN} are listed.</p>}
      <a href={linkTo(`/streams/${stream_id}`)}>Stream</a>
    </section>
  )
}
