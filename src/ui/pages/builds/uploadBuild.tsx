import { useSignal } from '@preact/signals'
import { api } from '../../frame/api.ts'
import { linkTo } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { refusalIn } from '../../parts/projectChoice.tsx'
import { shortId } from '../../parts/texts.tsx'

/** Browsers have `crypto.subtle` only on pages over HTTPS and of this machine. */
const refusalOfBrowser = (): string | undefined =>
  isSecureContext
    ? undefined
    : 'The browser computes the checksum of an upload only over HTTPS. Use HTTPS, or npx svc deploy.'

const sha256Of = async (content: Blob): Promise<string> => {
  const digest = await crypto.subtle.digest('SHA-256', await content.arrayBuffer())
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

interface Props {
  readonly project: string
  readonly onDone: () => void
}

/** Uploads a zip as a build, which is not deployed by that. */
export const UploadBuild = ({ project, onDone }: Props) => {
  const content = useSignal<File | null>(null)
  const refusal = refusalIn(project, 'build', 'create') ?? refusalOfBrowser()
  return (
    <div class="toolbar">
      <Action
        label="Upload"
        does={`Uploads a zip of functions as a build of ${project}. The service loads it once to check it, and does not deploy it.`}
        refusal={refusal}
        onOpen={() => (content.value = null)}
        run={async (idempotencyKey) => {
          if (!content.value) throw new Error('Zip: expected a file, got none')
          const form = new FormData()
          form.set('hash', await sha256Of(content.value))
          form.set('file', content.value, 'build.zip')
          const { build_id, functions, warnings, ignored } = await api.request(
            'POST /v1/projects/{project}/builds',
            { path: { project }, body: form, idempotencyKey },
          )
          onDone()
          const ignoredText = ignored.length > 0 ? ` Ignored files: ${ignored.join(', ')}.` : ''
          return (
            <>
              <a href={linkTo('/builds', { project, build: build_id })}>Build {shortId(build_id)}</a> is
              uploaded with {functions.length} {functions.length === 1 ? 'function' : 'functions'}.{' '}
              {warnings.join(' ')}
              {ignoredText}
            </>
          )
        }}
      >
        <label>
          Zip
          <input
            type="file"
            accept=".zip,application/zip"
            required
            onChange={({ currentTarget }) => (content.value = currentTarget.files?.[0] ?? null)}
          />
        </label>
      </Action>
      {refusal && <span class="hint">{refusal}</span>}
    </div>
  )
}
