import { api } from '../frame/api.ts'
import { useLoaded } from '../frame/load.ts'
import { useRepeat, useReturn } from '../frame/repeat.ts'
import { refusalOf } from '../frame/session.ts'
import { Action } from '../parts/action.tsx'
import { TextField } from '../parts/fields.tsx'
import { offsetOf, PAGE, Pager } from '../parts/pager.tsx'
import { Shown } from '../parts/shown.tsx'
import { Empty } from '../parts/texts.tsx'
import { useFields } from '../parts/useFields.ts'
import { DomainCard } from './domains/domainCard.tsx'

/** The pause between two looks at domains that the service is still setting up. */
const LOOK_MS = 3000

const COMMAND = `curl ${location.origin}/v1/domains -H "Authorization: Bearer $SVC_KEY" -d '{"domain":"hooks.example.com"}'`

/** The custom domains of the environment, with what their owner must do. */
export const Domains = () => {
  const offset = offsetOf()
  const domains = useLoaded(
    (signal) => api.request('GET /v1/domains', { query: { limit: PAGE, offset }, signal }),
    [offset],
  )
  const rows = domains.data?.data ?? []
  useReturn(domains.reload)
  useRepeat(
    domains.reload,
    LOOK_MS,
    rows.some(({ status }) => status !== 'active'),
  )
  return (
    <>
      <div class="heading">
        <h1>Domains</h1>
        <Register onDone={domains.reload} />
      </div>
      <Shown of={domains}>
        {({ pagination }) => (
          <>
            {rows.length === 0 && (
              <Empty command={COMMAND}>
                No domain is registered. Webhooks are reachable below the address of the service; a domain of
                your own serves them too. Register one above, or with an API key:
              </Empty>
            )}
            {rows.map((domain) => (
              <DomainCard key={domain.domain_id} of={domain} onDone={domains.reload} />
            ))}
            <Pager {...pagination} />
          </>
        )}
      </Shown>
    </>
  )
}

const Register = ({ onDone }: { readonly onDone: () => void }) => {
  const { name, begin } = useFields({ name: '' })
  return (
    <Action
      label="Register a domain"
      does="Registers a domain for this environment, and shows the DNS record that proves it."
      refusal={refusalOf('domain', 'create')}
      onOpen={begin}
      run={async (idempotencyKey) => {
        const { domain } = await api.request('POST /v1/domains', {
          body: { domain: name.value.trim() },
          idempotencyKey,
        })
        onDone()
        return `Registered ${domain}. Create its DNS record.`
      }}
    >
      <TextField
        label="Domain"
        required
        placeholder="hooks.example.com"
        value={name.value}
        onChange={(value) => (name.value = value)}
      />
    </Action>
  )
}
