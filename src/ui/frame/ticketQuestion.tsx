import { Dialog } from '../parts/dialog.tsx'
import { reportDone, reportFailed } from './notices.tsx'
import { envLabel, offeredTicket, signInWithTicket, ticketRefusal } from './session.ts'

/** Asks before the link of `svc open` replaces the session of this browser. */
export const TicketQuestion = () => {
  const keep = (): void => void (offeredTicket.value = null)
  const change = async (): Promise<void> => {
    await signInWithTicket()
    if (ticketRefusal.value) reportFailed(ticketRefusal.value)
    else reportDone(`Signed in to the environment ${envLabel.value}.`)
  }
  return (
    <Dialog title="Sign in with the link?" isOpen={offeredTicket.value !== null} onClose={keep}>
      <p>
        You are signed in to the environment <strong>{envLabel.value}</strong>. The link begins another
        session, which may belong to another environment. Use it only if you ran <code>svc open</code>{' '}
        yourself.
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick={() => void change()}>
          Use the link
        </button>
        <button type="button" class="plain" onClick={keep}>
          Keep my session
        </button>
      </div>
    </Dialog>
  )
}
