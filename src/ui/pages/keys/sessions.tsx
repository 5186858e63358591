import { actionsOf } from '../../../access/permissions.ts'
import type { Session } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { refusalOf, session } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { NO_GRANTS, PermissionGrid, PermissionList, permissionsOf } from '../../parts/permissionGrid.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, Time } from '../../parts/texts.tsx'
import { useFields } from '../../parts/useFields.ts'
import { asKey, IssuingKey, Lifetime } from './fields.tsx'
import { showToken } from './issuedToken.tsx'
import { RevokeAll } from './revokeAll.tsx'

const OFFSET = 'sessions_offset'
const LONGEST_S = 86_400

/** The session with which the dashboard reaches the service. */
const isOwn = ({ session_id }: Session): boolean => session_id === session.value?.session_id

/** The active sessions of the API key. */
export const Sessions = () => {
  const offset = offsetOf(OFFSET)
  const sessions = useLoaded(
    (signal) => api.request('GET /v1/sessions', { query: { limit: PAGE, offset }, signal }),
    [offset],
  )
  const columns: readonly Column<Session>[] = [
    {
      name: 'Session',
      cell: (one) => (
        <>
          <code>{one.session_id}</code> {isOwn(one) && <strong>this dashboard</strong>}
        </>
      ),
    },
    { name: 'Permissions', cell: ({ permissions }) => <PermissionList permissions={permissions} /> },
    {
      name: 'Metadata',
      cell: ({ metadata }) => metadata !== null && <code class="cut">{JSON.stringify(metadata)}</code>,
    },
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    { name: 'Actions', cell: (one) => <Revoke of={one} onDone={sessions.reload} /> },
  ]
  return (
    <section aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <p class="hint">For browsers, for at most a day. Signing in to the dashboard creates one.</p>
      <div class="toolbar">
        <Create onDone={sessions.reload} />
        <RevokeAll
          what="session"
          operation="DELETE /v1/sessions"
          type="session"
          does="Revokes every session of the API key, also the one of this dashboard: you must sign in again."
          onDone={sessions.reload}
        />
      </div>
      <List
        of={sessions}
        offset={OFFSET}
        caption="Sessions, the newest first"
        columns={columns}
        idOf={({ session_id }) => session_id}
        empty={
          <Empty command={`npx svc sessions create --permissions '{"stream:*": ["read"]}'`}>
            No session is active.
          </Empty>
        }
      />
    </section>
  )
}

const Revoke = ({ of, onDone }: { readonly of: Session; readonly onDone: () => void }) => (
  <Action
    label="Revoke"
    does={
      isOwn(of)
        ? 'Ends the session of this dashboard: you must sign in again.'
        : `Revokes the session ${of.session_id}. Its streams end, and its next request is refused.`
    }
    isDangerous
    asks
    refusal={refusalOf('session', 'delete', of.session_id)}
    run={async () => {
      const { session_id } = of
      await api.request('DELETE /v1/sessions/{session_id}', { path: { session_id } })
      onDone()
      return `Revoked the session ${session_id}.`
    }}
  />
)

const Create = ({ onDone }: { readonly onDone: () => void }) => {
  const { grants, seconds, issuer, begin } = useFields({ grants: NO_GRANTS, seconds: '3600', issuer: '' })
  return (
    <Action
      label="Create session"
      does="Creates a session with the chosen permissions, and shows its token once."
      refusal={refusalOf('session', 'create')}
      onOpen={begin}
      run={async (idempotencyKey, isSame) => {
        const created = await api.request('POST /v1/sessions', {
          headers: asKey(issuer.value),
          idempotencyKey,
          body: { permissions: permissionsOf(grants.value), expires_in: Number(seconds.value) },
        })
        if (isSame()) issuer.value = ''
        onDone()
        showToken({ what: 'Session', token: created.token })
        return `Created the session ${created.session_id}.`
      }}
    >
      <PermissionGrid
        types={[...actionsOf.keys()]}
        value={grants.value}
        onChange={(value) => (grants.value = value)}
      />
      <Lifetime value={seconds.value} longest={LONGEST_S} onChange={(value) => (seconds.value = value)} />
      <IssuingKey value={issuer.value} onChange={(value) => (issuer.value = value)} />
    </Action>
  )
}
