import type { Permissions } from '../../../client/index.ts'

export interface ApiKey {
  readonly api_key_id: string
  readonly name: string
  readonly enabled: boolean
  readonly permissions: Permissions
  readonly expires_at: string | null
  readonly created_at: string
}

export type NewApiKey = ApiKey & { readonly token: string }
