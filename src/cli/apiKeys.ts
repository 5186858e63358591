import { clock } from '../clock.ts'
import { duration } from './figures.ts'
import type { Column } from './table.ts'

/** A credential in the replies of the API; its kind decides which fields it has. */
export interface ApiKey {
  readonly api_key_id: string
  readonly env_id: string
  readonly name: string
  readonly enabled: boolean
  readonly access: string
  readonly expires_at: string | null
  readonly created_at: string
}

/** The token is in the reply that creates the key, and never again. */
export type NewApiKey = ApiKey & { readonly token: string }
export type RotatedApiKey = NewApiKey & { readonly former: ApiKey }

export const stateOf = ({
  enabled = true,
  revoked_at = null,
  expires_at,
}: {
  readonly enabled?: boolean
  readonly revoked_at?: string | null
  readonly expires_at: string | null
}): string => {
  if (revoked_at !== null) return 'revoked'
  if (!enabled) return 'disabled'
  if (expires_at === null) return 'valid'
  const left = Date.parse(expires_at) - clock.now()
  return left <= 0 ? 'expired' : `expires in ${duration(left)}`
}

export const apiKeyColumns: readonly Column<ApiKey>[] = [
  { title: 'API KEY', of: ({ name }) => name, cut: true },
  { title: 'ACCESS', of: ({ access }) => access },
  { title: 'STATE', of: stateOf },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'ID', of: ({ api_key_id }) => api_key_id },
]
