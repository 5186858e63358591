import type { Client, NewServiceKey, NewSession, Permissions, ServiceKey, Session } from '../client/index.ts'
import { allPages } from '../client/lists.ts'
import { stateOf } from './apiKeys.ts'
import type { Invocation, Result } from './command.ts'
import type { Column } from './table.ts'

interface NewCredential {
  readonly name: string
  /** The service checks it. */
  readonly permissions: unknown
  readonly expires_in?: number
}

/** A kind of credential that an API key issues. */
interface IssuedKind {
  readonly list: (service: Client, table: Invocation['table']) => Promise<Result>
  readonly create: (service: Client, body: NewCredential) => Promise<NewServiceKey | NewSession>
  readonly revoke: (service: Client, id: string) => Promise<void>
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
      const keys = await Array.fromAsync(
        allPages(
          (query) => service.request('GET /v1/service-keys', { query }),
          ({ service_key_id }) => service_key_id,
        ),
      )
      return { json: keys, text: table(keys, serviceKeyColumns) }
    },
    create: (service, { permissions, ...body }) =>
      service.request('POST /v1/service-keys', {
        body: { ...body, permissions: permissions as ServiceKey['permissions'] },
      }),
    revoke: (service, service_key_id) =>
      service.request('DELETE /v1/service-keys/{service_key_id}', { path: { service_key_id } }),
  },
  session: {
    async list(service, table) {
      const sessions = await Array.fromAsync(
        allPages(
          (query) => service.request('GET /v1/sessions', { query }),
          ({ session_id }) => session_id,
        ),
      )
      return { json: sessions, text: table(sessions, sessionColumns) }
    },
    // A session has no name.
    create: (service, { name: _, permissions, ...body }) =>
      service.request('POST /v1/sessions', { body: { ...body, permissions: permissions as Permissions } }),
    revoke: (service, session_id) =>
      service.request('DELETE /v1/sessions/{session_id}', { path: { session_id } }),
  },
}
