import { api } from '../../frame/api.ts'
import { refusalOf } from '../../frame/session.ts'
import { Action } from '../../parts/action.tsx'

interface Props {
  /** One credential; the plural has an `s`. */
  readonly what: 'service key' | 'session'
  readonly operation: 'DELETE /v1/service-keys' | 'DELETE /v1/sessions'
  /** Its type in permissions. */
  readonly type: 'key' | 'session'
  readonly does: string
  readonly onDone: () => void
}

/** Revokes every credential of a kind that the API key of the session has issued. */
export const RevokeAll = ({ what, operation, type, does, onDone }: Props) => (
  <Action
    label={`Revoke all ${what}s`}
    does={does}
    isDangerous
    asks
    refusal={refusalOf(type, 'delete')}
    run={async () => {
      const { revoked_count } = await api.request(operation)
      onDone()
      return `Revoked ${revoked_count} ${revoked_count === 1 ? what : `${what}s`}.`
    }}
  />
)
