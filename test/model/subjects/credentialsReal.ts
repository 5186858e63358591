import type { Credential } from '../../../src/access/credential.ts'
import { FULL_ACCESS } from '../../../src/access/permissions.ts'
import { changeApiKey } from '../../../src/commands/credentials/changeApiKey.ts'
import { createApiKey } from '../../../src/commands/credentials/createApiKey.ts'
import { deleteApiKey } from '../../../src/commands/credentials/deleteApiKey.ts'
import { issueServiceKey } from '../../../src/commands/credentials/issueServiceKey.ts'
import { issueSession } from '../../../src/commands/credentials/issueSession.ts'
import { revokeServiceKey } from '../../../src/commands/credentials/revokeServiceKey.ts'
import { revokeServiceKeys } from '../../../src/commands/credentials/revokeServiceKeys.ts'
import { revokeSession } from '../../../src/commands/credentials/revokeSession.ts'
import { revokeSessions } from '../../../src/commands/credentials/revokeSessions.ts'
import type { Permissions } from '../../../src/events/org.ts'
import type { Scenario } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'
import type { CredentialsCommand, Grants } from './credentialsSetup.ts'

const MAPS: Readonly<Record<Grants, Permissions>> = {
  full: FULL_ACCESS,
  runs: { 'run:*': ['read'] },
  projects: { 'project:*': ['read'] },
  wrong: { 'run:*': ['fly'] },
}
const grantsOf = (map: Permissions): string =>
  Object.entries(MAPS).find(([, known]) => JSON.stringify(known) === JSON.stringify(map))?.[0] ??
  JSON.stringify(map)

/** The credentials of one environment, through the commands of the service; keys act by their tokens, as through the API. */
export const openCredentials = async (world: World): Promise<Scenario<CredentialsCommand>> => {
  const { env_id } = await world.openEnv()
  const ids = new Ids()
  const { cause } = ids.caller(env_id, 'operator')
  const tokens = new Map<string, string>()
  const keyId = (name: string): string => ids.of(`${name} api key`)
  const authenticate = (node: ModelNode, name: string): Promise<Credential> =>
    node.authenticator.authenticate(tokens.get(name))

  const create = async (node: ModelNode, name: string, grants: Grants): Promise<void> => {
    const wanted = { env_id, name, permissions: MAPS[grants] }
    tokens.set(name, (await createApiKey(node, wanted, ids.caller(env_id, name))).token)
  }
  await create(world.node(0), 'root', 'full')

  const issue = async (
    node: ModelNode,
    { own, key, kind, grants }: Extract<CredentialsCommand, { op: 'issue' }>,
  ): Promise<void> => {
    const issuer = await authenticate(node, key)
    const command = kind === 'session' ? issueSession : issueServiceKey
    const { token } = await command(node, { issuer, permissions: MAPS[grants] }, ids.caller(env_id, own))
    tokens.set(own, token)
  }

  const perform = async (node: ModelNode, command: CredentialsCommand): Promise<unknown> => {
    switch (command.op) {
      case 'createKey':
        return create(node, command.own, command.grants)
      case 'changeKey': {
        const { enabled, grants } = command
        const change = {
          api_key_id: keyId(command.id),
          enabled,
          ...(grants && { permissions: MAPS[grants] }),
        }
        return changeApiKey(node, change, cause)
      }
      case 'deleteKey':
        return deleteApiKey(node, { api_key_id: keyId(command.id) }, cause)
      case 'use': {
        const { permissions } = await authenticate(node, command.id)
        return { runs: permissions.allows('run', 'read'), projects: permissions.allows('project', 'read') }
      }
      case 'issue':
        return issue(node, command)
      case 'revoke': {
        const { api_key_id } = await authenticate(node, command.key)
        if (command.kind === 'session')
          return revokeSession(node, { api_key_id, session_id: ids.of(`${command.id} session`) }, cause)
        return revokeServiceKey(
          node,
          { api_key_id, service_key_id: ids.of(`${command.id} service key`) },
          cause,
        )
      }
      case 'revokeAll': {
        const { api_key_id } = await authenticate(node, command.key)
        return (command.kind === 'session' ? revokeSessions : revokeServiceKeys)(node, { api_key_id }, cause)
      }
      default:
        return command satisfies never
    }
  }

  const observe = async ({ views }: ModelNode): Promise<unknown> => {
    await views.settled()
    const page = { limit: 200, offset: 0 }
    const keys = (await views.apiKeys.find({ equal: { env_id }, sort: 'order', ...page })).items
    const issued: Record<string, unknown> = {}
    const nameOf = (id: string): string => ids.nameOf(id).split(' ')[0] ?? id
    for (const { api_key_id } of keys) {
      const of = { equal: { api_key_id }, ...page }
      for (const { session_id, permissions } of (await views.sessions.find({ ...of, sort: 'expires_at' }))
        .items)
        issued[nameOf(session_id)] = { grants: grantsOf(permissions), revoked: false }
      for (const { service_key_id, permissions, revoked_at } of (
        await views.serviceKeys.find({ ...of, sort: 'order' })
      ).items)
        issued[nameOf(service_key_id)] = { grants: grantsOf(permissions), revoked: revoked_at !== null }
    }
    const seen = keys.map(
      ({ api_key_id, enabled, permissions }) =>
        [nameOf(api_key_id), { enabled, grants: grantsOf(permissions) }] as const,
    )
    return { keys: Object.fromEntries(seen), issued }
  }

  return { perform, observe }
}
