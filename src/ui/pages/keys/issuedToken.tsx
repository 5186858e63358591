import { signal } from '@preact/signals'
import { Dialog } from '../../parts/dialog.tsx'
import { Copy } from '../../parts/texts.tsx'

interface Issued {
  readonly what: string
  readonly token: string
}

const issued = signal<Issued | null>(null)
const close = (): void => void (issued.value = null)

/** Shows the token of a new credential, also if the reader has left the page that created it. */
export const showToken = (one: Issued): void => void (issued.value = one)

/** The token of a new credential. The service does not store it, so it is shown once. */
export const IssuedToken = () => (
  <Dialog title={issued.value?.what ?? ''} isOpen={issued.value !== null} onClose={close}>
    <p>Copy the token now: it is not stored, and is never shown again.</p>
    <p>
      <code class="token">{issued.value?.token}</code>
    </p>
    <div class="buttons">
      <Copy text={issued.value?.token ?? ''} label="Copy the token" isSecret />
      <button type="button" onClick={close}>
        Done
      </button>
    </div>
  </Dialog>
)
