import { useSignal } from '@preact/signals'
import { may, operator, session } from '../frame/session.ts'
import { SignIn } from '../frame/signIn.tsx'
import { ApiKeys } from './keys/apiKeys.tsx'
import { type Issued, IssuedToken } from './keys/issuedToken.tsx'
import { ServiceKeys } from './keys/serviceKeys.tsx'
import { Sessions } from './keys/sessions.tsx'

/** The credentials of the environment: service keys, sessions and, for the operator, API keys. */
export const Keys = () => {
  const issued = useSignal<Issued | null>(null)
  const onIssue = (one: Issued): void => void (issued.value = one)
  return (
    <>
      <h1>Keys and sessions</h1>
      {may('key', 'read') ? (
        <ServiceKeys onIssue={onIssue} />
      ) : (
        <Lacking name="Service keys" permission="key:* read" />
      )}
      {may('session', 'read') ? (
        <Sessions onIssue={onIssue} />
      ) : (
        <Lacking name="Sessions" permission="session:* read" />
      )}
      {operator.value && session.value ? (
        <ApiKeys env_id={session.value.env_id} onIssue={onIssue} />
      ) : (
        <section aria-labelledby="api-keys">
          <h2 id="api-keys">API keys of the environment</h2>
          <p>Only the operator of the installation manages API keys.</p>
          <details>
            <summary>Sign in as the operator</summary>
            <SignIn isInPage scope="operator" />
          </details>
        </section>
      )}
      <IssuedToken issued={issued.value} onClose={() => (issued.value = null)} />
    </>
  )
}

const Lacking = ({ name, permission }: { readonly name: string; readonly permission: string }) => (
  <section aria-label={name}>
    <h2>{name}</h2>
    <p>
      Your key does not permit this list: it needs <code>{permission}</code>.
    </p>
  </section>
)
