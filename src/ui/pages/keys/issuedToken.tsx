import { Dialog } from '../../parts/dialog.tsx'
import { Copy } from '../../parts/texts.tsx'

export interface Issued {
  readonly what: string
  readonly token: string
}

/** The token of a new credential. The service does not store it, so it is shown once. */
export const IssuedToken = ({
  issued,
  onClose,
}: {
  readonly issued: Issued | null
  readonly onClose: () => void
}) => (
  <Dialog title={issued?.what ?? ''} isOpen={issued !== null} onClose={onClose}>
    <p>Copy the token now: it is not stored, and is never shown again.</p>
    <p>
      <code class="token">{issued?.token}</code>
    </p>
    <div class="buttons">
      <Copy text={issued?.token ?? ''} label="Copy the token" isSecret />
      <button type="button" onClick={onClose}>
        Done
      </button>
    </div>
  </Dialog>
)
