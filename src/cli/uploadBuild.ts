import type { BuildUpload } from '../client/api.ts'
import type { Client, RequestInput } from '../client/client.ts'

type FormInput = RequestInput<'POST /v1/projects/{project}/builds'>

interface Upload {
  readonly project: string
  readonly zip: Uint8Array
  readonly sha256: string
  /** Uploads a live build instead of a release. */
  readonly live?: boolean
  /** Called with the bytes that were handed to the connection. */
  readonly onProgress?: ((sent: number, total: number) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

/** A form whose progress is visible. It can be read again, for another attempt. */
class CountedBlob extends Blob {
  readonly #onRead: (bytes: number) => void

  constructor(form: Blob, onRead: (bytes: number) => void) {
    super([form])
    this.#onRead = onRead
  }

  override stream(): ReturnType<Blob['stream']> {
    let read = 0
    const counter = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (chunk, controller) => {
        this.#onRead((read += chunk.length))
        controller.enqueue(chunk)
      },
    })
    return super.stream().pipeThrough(counter)
  }
}

/** Uploads a build, which the service checks and loads once. Rejects with a `ServiceError`. */
export const uploadBuild = async (
  client: Pick<Client, 'open'>,
  { project, zip, sha256, live = false, onProgress, signal }: Upload,
): Promise<BuildUpload> => {
  const form = new FormData()
  form.set('hash', sha256)
  if (live) form.set('live', 'true')
  form.set('file', new Blob([new Uint8Array(zip)]), 'build.zip')
  const encoded = new Response(form)
  const type = encoded.headers.get('content-type') ?? ''
  const whole = await encoded.blob()
  const body = onProgress ? new CountedBlob(whole, (sent) => onProgress(sent, whole.size)) : whole
  const input = { path: { project }, body, type, ...(signal && { signal }) }
  // The types of the client know the form before it is encoded.
  const response = await client.open('POST /v1/projects/{project}/builds', input as unknown as FormInput)
  return ((await response.json()) as { readonly data: BuildUpload }).data
}
