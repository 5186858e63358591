import { actionsOf } from '../../../access/permissions.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { Action } from '../../parts/action.tsx'
import { Checkbox } from '../../parts/fields.tsx'
import type { Page } from '../../../client/index.ts'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { NO_GRANTS, PermissionGrid, PermissionList, permissionsOf } from '../../parts/permissionGrid.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, Time } from '../../parts/texts.tsx'
import { useFields } from '../../parts/useFields.ts'
import type { ApiKey, NewApiKey } from './apiKey.ts'
import { ApiKeyActions } from './apiKeyActions.tsx'
import { Name } from './fields.tsx'
import { showToken } from './issuedToken.tsx'

const OFFSET = 'api_keys_offset'

interface Props {
  readonly env_id: string
}

/** The API keys of an environment, for the operator. */
export const ApiKeys = ({ env_id }: Props) => {
  const offset = offsetOf(OFFSET)
  const keys = useLoaded(
    (signal) =>
      ask<Page<ApiKey>>('GET /operator/envs/{env_id}/api-keys', {
        path: { env_id },
        query: { limit: PAGE, offset },
        signal,
      }),
    [env_id, offset],
  )
  const columns: readonly Column<ApiKey>[] = [
    { name: 'Name', cell: ({ name, api_key_id }) => <span title={api_key_id}>{name}</span> },
    {
      name: 'State',
      cell: ({ enabled }) =>
        enabled ? <span class="status good">Enabled</span> : <span class="status cancelled">Disabled</span>,
    },
    { name: 'Permissions', cell: ({ permissions }) => <PermissionList permissions={permissions} /> },
    { name: 'Expires', cell: ({ expires_at }) => (expires_at ? <Time at={expires_at} /> : 'Never') },
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Actions', cell: (key) => <ApiKeyActions of={key} onDone={keys.reload} /> },
  ]
  return (
    <section aria-labelledby="api-keys">
      <h2 id="api-keys">API keys of the environment</h2>
      <div class="toolbar">
        <Create env_id={env_id} onDone={keys.reload} />
      </div>
      <List
        of={keys}
        offset={OFFSET}
        caption="API keys, the newest first"
        columns={columns}
        idOf={({ api_key_id }) => api_key_id}
        empty={
          <Empty command={`npx svc keys create ${env_id} --name ci`}>The environment has no API key.</Empty>
        }
      />
    </section>
  )
}

const Create = ({ env_id, onDone }: Props & { readonly onDone: () => void }) => {
  const { name, isFull, grants, begin } = useFields({ name: '', isFull: false, grants: NO_GRANTS })
  return (
    <Action
      label="Create API key"
      does="Creates an API key of the environment, and shows its token once."
      onOpen={begin}
      run={async (idempotencyKey) => {
        const key = await ask<NewApiKey>('POST /operator/envs/{env_id}/api-keys', {
          path: { env_id },
          idempotencyKey,
          body: { name: name.value, ...(!isFull.value && { permissions: permissionsOf(grants.value) }) },
        })
        onDone()
        showToken({ what: `API key ${key.name}`, token: key.token })
        return `Created the API key ${key.name}.`
      }}
    >
      <Name value={name.value} onChange={(value) => (name.value = value)} />
      <Checkbox
        label="Full access: every action on everything"
        isChecked={isFull.value}
        onChange={(isChecked) => (isFull.value = isChecked)}
      />
      {!isFull.value && (
        <PermissionGrid
          types={[...actionsOf.keys()]}
          value={grants.value}
          onChange={(value) => (grants.value = value)}
        />
      )}
    </Action>
  )
}
