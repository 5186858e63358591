import { stateOf } from './apiKeys.ts'
import { type Client, path } from './client.ts'
import type { Invocation, Result } from './command.ts'
import type { Column } from './table.ts'

interface ServiceKey {
  readonly service_key_id: string
  readonly name: string
  readonly created_at: string
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
}

interface Session {
  readonly session_id: string
  readonly created_at: string
  readonly expires_at: string
}

interface NewCredential {
  readonly name: string
  readonly permissions: unknown
  readonly expires_in?: number
}

/** A kind of credential that an API key issues. */
interface IssuedKind {
  readonly list: (service: Client, table: Invocation['table']) => Promise<Result>
  readonly create: (service: Client, body: NewCredential) => Promise<{ readonly token: string }>
  readonly pathOf: (id: string) => string
}

const serviceKeyColumns: readonly Column<ServiceKey>[] = [
  { title: 'SERVICE KEY', of: ({ name }) => name, cut: true },
  { title: 'STATE', of: stateOf },
  { title: 'LAST USED', of: ({ last_used_at }) => last_used_at },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'ID', of: ({ service_key_id }) => service_key_id },
]

const sessionColumns: readonly Column<Session>[] = [
  { title: 'SESSION', of: ({ session_id }) => session_id },
  { title: 'STATE', of: stateOf },
  { title: 'CREATED', of: ({ created_at }) => created_at },
]

export const issuedKinds: Readonly<Record<'service' | 'session', IssuedKind>> = {
  service: {
    async list(service, table) {
      const keys = await Array.fromAsync(service.all<ServiceKey>('/v1/service-keys'))
      return { json: keys, text: table(keys, serviceKeyColumns) }
    },
    create: (service, body) => service.request('POST', '/v1/service-keys', { body }),
    pathOf: (id) => path`/v1/service-keys/${id}`,
  },
  session: {
    async list(service, table) {
      const sessions = await Array.fromAsync(service.all<Session>('/v1/sessions'))
      return { json: sessions, text: table(sessions, sessionColumns) }
    },
    // A session has no name.
    create: (service, { name: _, ...body }) => service.request('POST', '/v1/sessions', { body }),
    pathOf: (id) => path`/v1/sessions/${id}`,
  },
}
