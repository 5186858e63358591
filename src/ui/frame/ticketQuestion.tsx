import { useSignal } from '@preact/signals'
import { Dialog } from '../parts/dialog.tsx'
import { Submit } from '../parts/submit.tsx'
import { Alert } from '../parts/texts.tsx'
import { sentTextOf } from './api.ts'
import { reportDone, reportFailed } from './notices.tsx'
import { envLabel, offeredTicket, signInWithTicket, ticketRefusal } from './session.ts'

/** Asks before the link of `svc open` replaces the session of this browser. */
export const TicketQuestion = () => {
  const isBusy = useSignal(false)
  const failure = useSignal('')
  const keep = (): void => void (offeredTicket.value = null)
  const change = async (): Promise<void> => {
    if (isBusy.peek()) return
    isBusy.value = true
    failure.value = ''
    try {
      await signInWithTicket()
      if (ticketRefusal.value) reportFailed(ticketRefusal.value)
      else reportDone(`Signed in to the environment ${envLabel.value}.`)
    } catch (error) {
      failure.value = sentTextOf(error)
    } finally {
      isBusy.value = false
    }
  }
  return (
    <Dialog title="Sign in with the link?" isOpen={offeredTicket.value !== null} onClose={keep}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void change()
        }}
      >
        <p>
          You are signed in to the environment <strong>{envLabel.value}</strong>. The link begins another
          session, which may belong to another environment. Use it only if you ran <code>svc open</code>{' '}
          yourself.
        </p>
        <Alert text={failure.value} />
        <div class="buttons">
          <Submit label="Use the link" isBusy={isBusy.value} />
          <button type="button" class="plain" onClick={keep}>
            Keep my session
          </button>
        </div>
      </form>
    </Dialog>
  )
}
