import { SERVICE_KEY_TYPES } from '../../../access/permissions.ts'
import type { NewServiceKey, ServiceKey } from '../../../client/index.ts'
import { api, ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { serviceNow } from '../../frame/serviceClock.ts'
import { refusalOf } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { TextField } from '../../parts/fields.tsx'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { NO_GRANTS, PermissionGrid, PermissionList, permissionsOf } from '../../parts/permissionGrid.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, Time } from '../../parts/texts.tsx'
import { useFields } from '../../parts/useFields.ts'
import { asKey, IssuingKey, Lifetime, Name } from './fields.tsx'
import { showToken } from './issuedToken.tsx'
import { RevokeAll } from './revokeAll.tsx'

const OFFSET = 'keys_offset'

/** The service keys that the API key of the session has issued. */
export const ServiceKeys = () => {
  const offset = offsetOf(OFFSET)
  const keys = useLoaded(
    (signal) => api.request('GET /v1/service-keys', { query: { limit: PAGE, offset }, signal }),
    [offset],
  )
  const columns: readonly Column<ServiceKey>[] = [
    {
      name: 'Name',
      cell: ({ name, service_key_id }) => <span title={service_key_id}>{name || service_key_id}</span>,
    },
    { name: 'State', cell: (key) => <State of={key} /> },
    { name: 'Permissions', cell: ({ permissions }) => <PermissionList permissions={permissions} /> },
    { name: 'Expires', cell: ({ expires_at }) => (expires_at ? <Time at={expires_at} /> : 'Never') },
    { name: 'Last used', cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : 'Never') },
    { name: 'Actions', cell: (key) => <Revoke of={key} onDone={keys.reload} /> },
  ]
  return (
    <section aria-labelledby="service-keys">
      <h2 id="service-keys">Service keys</h2>
      <p class="hint">
        For partners and other services: they call webhooks and functions, and follow streams.
      </p>
      <div class="toolbar">
        <Create onDone={keys.reload} />
        <RevokeAll
          what="service key"
          operation="DELETE /v1/service-keys"
          type="key"
          does="Revokes every service key of the API key. Their streams end, and their next requests are refused."
          onDone={keys.reload}
        />
      </div>
      <List
        of={keys}
        offset={OFFSET}
        caption="Service keys, the newest first"
        columns={columns}
        idOf={({ service_key_id }) => service_key_id}
        empty={
          <Empty
            command={`npx svc keys create --kind service --name partner --permissions '{"webhook:*": ["execute"]}'`}
          >
            No service key has been created.
          </Empty>
        }
      />
    </section>
  )
}

const State = ({ of: { revoked_at, expires_at } }: { readonly of: ServiceKey }) => {
  if (revoked_at) return <span class="status cancelled">Revoked</span>
  if (expires_at && Date.parse(expires_at) <= serviceNow())
    return <span class="status cancelled">Expired</span>
  return <span class="status good">Valid</span>
}

const Revoke = ({
  of: { service_key_id, name, revoked_at },
  onDone,
}: {
  readonly of: ServiceKey
  readonly onDone: () => void
}) => (
  <Action
    label="Revoke"
    does={`Revokes the service key ${name || service_key_id}. Its streams end, and its next request is refused.`}
    isDangerous
    asks
    refusal={revoked_at ? 'It is revoked' : refusalOf('key', 'delete', service_key_id)}
    run={async () => {
      await api.request('DELETE /v1/service-keys/{service_key_id}', { path: { service_key_id } })
      onDone()
      return `Revoked ${name || service_key_id}.`
    }}
  />
)

const Create = ({ onDone }: { readonly onDone: () => void }) => {
  const { name, description, grants, seconds, issuer, begin } = useFields({
    name: '',
    description: '',
    grants: NO_GRANTS,
    seconds: '',
    issuer: '',
  })
  return (
    <Action
      label="Create service key"
      does="Creates a key with the chosen permissions, and shows its token once."
      refusal={refusalOf('key', 'create')}
      onOpen={begin}
      run={async (idempotencyKey, isSame) => {
        const key = await ask<NewServiceKey>('POST /v1/service-keys', {
          headers: asKey(issuer.value),
          idempotencyKey,
          body: {
            name: name.value,
            description: description.value,
            permissions: permissionsOf(grants.value),
            ...(seconds.value !== '' && { expires_in: Number(seconds.value) }),
          },
        })
        if (isSame()) issuer.value = ''
        onDone()
        showToken({ what: `Service key ${key.name}`, token: key.token })
        return `Created the service key ${key.name}.`
      }}
    >
      <Name value={name.value} onChange={(value) => (name.value = value)} />
      <TextField
        label="Description"
        value={description.value}
        onChange={(value) => (description.value = value)}
      />
      <PermissionGrid
        types={SERVICE_KEY_TYPES}
        value={grants.value}
        onChange={(value) => (grants.value = value)}
      />
      <Lifetime value={seconds.value} onChange={(value) => (seconds.value = value)} />
      <IssuingKey value={issuer.value} onChange={(value) => (issuer.value = value)} />
    </Action>
  )
}
