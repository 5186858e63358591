import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { Submit } from '../parts/submit.tsx'
import { Alert } from '../parts/texts.tsx'
import { type Scope, sentTextOf } from './api.ts'
import { signIn, signInAsOperator, ticketRefusal } from './session.ts'

const OPERATOR_TOKEN = /^svc_operator_/

interface Props {
  /** It is shown within a page of the other scope. */
  readonly isInPage?: boolean
  readonly scope?: Scope
}

const LABELS = { env: 'API key', operator: 'Operator token' }

/** Where the credential is. */
const Help = ({ scope }: { readonly scope: Scope | undefined }) =>
  scope === 'operator' ? (
    <>
      The first start of the service prints it, and <code>npx svc secrets operator-token</code> prints it
      again on the machine of the service.
    </>
  ) : (
    <>
      The first start of the service prints {scope === undefined ? 'both' : 'one'}. <code>npx svc open</code>{' '}
      signs in with the profile of the command line.
    </>
  )

/** Exchanges an API key or the operator token for a cookie that scripts cannot read. */
export const SignIn = ({ isInPage = false, scope }: Props) => {
  const id = useId()
  const failure = useSignal('')
  const isBusy = useSignal(false)

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    if (isBusy.peek()) return
    const form = event.currentTarget as HTMLFormElement
    const token = String(new FormData(form).get('token') ?? '').trim()
    isBusy.value = true
    failure.value = ''
    try {
      const isOperator = scope === 'operator' || (scope === undefined && !isApiToken(token))
      await (isOperator ? signInAsOperator(token) : signIn({ token }))
      form.reset()
    } catch (error) {
      failure.value = sentTextOf(error)
    } finally {
      isBusy.value = false
    }
  }

  return (
    <div class={isInPage ? '' : 'centered'}>
      <form class="sign-in" onSubmit={(event) => void submit(event)}>
        {!isInPage && <h1>Sign in to svc</h1>}
        <Alert text={ticketRefusal.value} />
        <label for={id}>{scope ? LABELS[scope] : 'API key or operator token'}</label>
        <input
          id={id}
          name="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          autofocus
          aria-describedby={`${id}-help`}
        />
        <p id={`${id}-help`} class="hint">
          <Help scope={scope} />
        </p>
        <Alert text={failure.value} />
        <Submit label="Sign in" busyLabel="Signing in…" isBusy={isBusy.value} />
      </form>
    </div>
  )
}

/** `svc_<uuid>_…` is an API key and `s_<uuid>_…` a session; an operator may choose any token. */
const isApiToken = (token: string): boolean =>
  !OPERATOR_TOKEN.test(token) && /^(?:svc_|s_)?[0-9a-f]{8}-[0-9a-f-]{27}_/.test(token)
