import { Modal } from '../parts/dialog.tsx'
import { ended } from './api.ts'
import { operator, session, signOut } from './session.ts'
import { SignIn } from './signIn.tsx'

const leaveOperator = (): void => {
  operator.value = null
  ended.value = null
}

/**
 * Asks for a credential above the page whose session has ended. As every modal dialog, it makes the rest of the page inert
 * and hides it from assistive technology. The page remains below it with what was written.
 */
export const SignInAgain = () => {
  const scope = ended.value
  if (!scope || !(scope === 'operator' ? operator : session).value) return null
  return (
    <Modal title="Your session has ended">
      <p role="alert">Sign in to continue on this page. What you have written is kept.</p>
      <SignIn isInPage scope={scope} />
      <button
        type="button"
        class="plain"
        onClick={() => (scope === 'operator' ? leaveOperator() : void signOut())}
      >
        {scope === 'operator' ? 'Continue without the operator' : 'Leave the page and sign out'}
      </button>
    </Modal>
  )
}
