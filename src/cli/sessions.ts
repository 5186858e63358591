import { type CliCommand, command } from './command.ts'
import { issuedKinds } from './issued.ts'
import { credentialId, json, seconds } from './values.ts'

const group = 'sessions'
const { session } = issuedKinds

export const sessionCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'create',
    summary: 'create a session, and print its token once',
    description:
      'Creates a session of the API key and prints its token, for example for a browser. The token cannot be read again.',
    ofEnvironment: true,
    options: {
      permissions: {
        value: 'JSON',
        description: 'the permission map as JSON, or @FILE with a file that contains it',
        parse: json,
        required: true,
      },
      'expires-in': { value: 'TIME', description: 'the lifetime, such as 30m or 7d', parse: seconds },
    },
    examples: [`svc sessions create --permissions '{"stream:*": ["read"]}' --expires-in 30m`],
    async run({ options, environment }) {
      const expires_in = options['expires-in']
      const created = await session.create(environment(), {
        name: '',
        permissions: options.permissions,
        ...(expires_in !== undefined && { expires_in }),
      })
      return {
        json: created,
        text: `Created a session\n\n  ${created.token}\n\nThe token is not shown again.\n`,
      }
    },
  }),
  command({
    group,
    name: 'list',
    isDefault: true,
    summary: 'list the active sessions of the API key',
    description: 'Lists the active sessions that the API key has issued, without their tokens.',
    ofEnvironment: true,
    examples: ['svc sessions', 'svc sessions list --json'],
    run: ({ environment, table }) => session.list(environment(), table),
  }),
  command({
    group,
    name: 'revoke',
    summary: 'revoke a session at once',
    description: 'Revokes a session of the API key, from the next request on.',
    ofEnvironment: true,
    arguments: { session: { description: 'the id of the session', parse: credentialId } },
    examples: ['svc sessions revoke SESSION_ID', 'svc sessions revoke SESSION_ID --yes'],
    confirms: true,
    async run({ args, environment, confirm }) {
      await confirm(`Revoke the session ${args.session}?`)
      await session.revoke(environment(), args.session)
      return { json: { revoked: args.session }, text: `Revoked session ${args.session}\n` }
    },
  }),
]
