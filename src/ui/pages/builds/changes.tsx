import type { BuildChanges } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { Shown } from '../../parts/shown.tsx'

interface Props {
  readonly project: string
  readonly build_id: string
}

/** The functions that a deployment of the build would add, remove or change. */
export const Changes = ({ project, build_id }: Props) => {
  const changes = useLoaded(
    (signal) =>
      api.request('GET /v1/projects/{project}/builds/{build_id}/changes', {
        path: { project, build_id },
        signal,
      }),
    [project, build_id],
  )
  return (
    <Shown of={changes} loading={<p class="hint">Comparing…</p>}>
      {(data) => <ChangesOf changes={data} build_id={build_id} />}
    </Shown>
  )
}

interface ChangesProps {
  readonly changes: BuildChanges
  readonly build_id: string
}

const ChangesOf = ({ changes, build_id }: ChangesProps) => {
  const { against } = changes
  if (against === build_id) return <p>This build is deployed.</p>
  return (
    <>
      <p>
        {against === null ? (
          'No build is deployed yet.'
        ) : (
          <>
            Compared with the deployed build <code>{against}</code>:
          </>
        )}{' '}
        {isSame(changes) && 'The functions and their triggers are the same. Their code may differ.'}
      </p>
      <ChangeList changes={changes} />
    </>
  )
}

type Functions = Pick<BuildChanges, 'added' | 'removed' | 'changed'>

const isSame = ({ added, removed, changed }: Functions): boolean =>
  added.length + removed.length + changed.length === 0

/** Each function with what happens to it. */
const ChangeList = ({ changes: { added, removed, changed } }: { readonly changes: Functions }) => (
  <ul class="changes" aria-label="Changes of functions">
    {added.map((fn) => (
      <Change key={fn} text="Added" fn={fn} kind="good" />
    ))}
    {changed.map((fn) => (
      <Change key={fn} text="Changed" fn={fn} kind="warn" />
    ))}
    {removed.map((fn) => (
      <Change key={fn} text="Removed" fn={fn} kind="bad" />
    ))}
  </ul>
)

interface ChangeProps {
  readonly text: string
  readonly fn: string
  readonly kind: 'good' | 'warn' | 'bad'
}

const Change = ({ text, fn, kind }: ChangeProps) => (
  <li>
    <span class={`status ${kind}`}>{text}</span> <code>{fn}</code>
  </li>
)

/** The changes in a sentence. */
export const changesText = ({ added, removed, changed }: Functions): string =>
  isSame({ added, removed, changed })
    ? 'Functions and triggers are the same.'
    : `${added.length} added, ${changed.length} changed, ${removed.length} removed.`
