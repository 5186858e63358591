import { may, operator, session } from '../frame/session.ts'
import { SignIn } from '../frame/signIn.tsx'
import { Lacking } from '../parts/lacking.tsx'
import { ApiKeys } from './keys/apiKeys.tsx'
import { ServiceKeys } from './keys/serviceKeys.tsx'
import { Sessions } from './keys/sessions.tsx'

/** The credentials of the environment: service keys, sessions and, for the operator, API keys. */
export const Keys = () => (
  <>
    <h1>Keys and sessions</h1>
    {may('key', 'read') ? <ServiceKeys /> : <NotShown name="Service keys" type="key" />}
    {may('session', 'read') ? <Sessions /> : <NotShown name="Sessions" type="session" />}
    {operator.value && session.value ? (
      <ApiKeys env_id={session.value.env_id} />
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
  </>
)

const NotShown = ({ name, type }: { readonly name: string; readonly type: string }) => (
  <section aria-label={name}>
    <h2>{name}</h2>
    <Lacking type={type} action="read" />
  </section>
)
