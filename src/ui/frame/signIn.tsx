import { useSignal } from '@preact/signals'
import { Alert } from '../parts/texts.tsx'
import { textOf } from './api.ts'
import { signIn, signInAsOperator, ticketRefusal } from './session.ts'

const OPERATOR_TOKEN = /^svc_operator_/

interface Props {
  readonly hasEnded?: boolean
  /** It is shown within a page of the other scope. */
  readonly isInPage?: boolean
  readonly scope?: 'env' | 'operator'
}

const LABELS = { env: 'API key', operator: 'Operator token' }

/** Exchanges an API key or the operator token for a cookie that scripts cannot read. */
export const SignIn = ({ hasEnded = false, isInPage = false, scope }: Props) => {
  const failure = useSignal('')
  const isBusy = useSignal(false)

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const token = String(new FormData(form).get('token') ?? '').trim()
    isBusy.value = true
    failure.value = ''
    try {
      const isOperator = scope === 'operator' || (scope === undefined && !isApiToken(token))
      await (isOperator ? signInAsOperator(token) : signIn({ token }))
      form.reset()
    } catch (error) {
      failure.value = textOf(error)
    } finally {
      isBusy.value = false
    }
  }

  return (
    <div class={isInPage ? '' : 'centered'}>
      <form class="sign-in" onSubmit={(event) => void submit(event)}>
        {!isInPage && <h1>Sign in to svc</h1>}
        {hasEnded && <p role="alert">Your session has ended. Sign in to continue on this page.</p>}
        <Alert text={ticketRefusal.value} />
        <label for="token">{scope ? LABELS[scope] : 'API key or operator token'}</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          autofocus
          aria-describedby="token-help"
        />
        <p id="token-help" class="hint">
          The first start of the service prints both. <code>npx svc open</code> signs in with the profile of
          the command line.
        </p>
        <Alert text={failure.value} />
        <button type="submit" disabled={isBusy.value}>
          {isBusy.value ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
    </div>
  )
}

/** `svc_<uuid>_…` is an API key and `s_<uuid>_…` a session; an operator may choose any token. */
const isApiToken = (token: string): boolean =>
  !OPERATOR_TOKEN.test(token) && /^(?:svc_|s_)?[0-9a-f]{8}-[0-9a-f-]{27}_/.test(token)
