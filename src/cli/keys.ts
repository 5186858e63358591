import { onOneLine } from '../logger.ts'
import { type ApiKey, apiKeyColumns, type NewApiKey, type RotatedApiKey } from './apiKeys.ts'
import { type Client, path } from './client.ts'
import { type CliCommand, command } from './command.ts'
import { issuedKinds } from './issued.ts'
import { ENV_ARGUMENT, findEnv } from './tenants.ts'
import { credentialId, json, oneOf, seconds } from './values.ts'
import { WrongUsage } from './wrongUsage.ts'

const group = 'keys'
const env = { ...ENV_ARGUMENT, count: 'optional' } as const
const key = { description: 'the id of the key', parse: credentialId }
const kind = {
  value: 'KIND',
  description: 'api (default), service or session; the last two belong to SVC_KEY',
  parse: oneOf('api', 'service', 'session'),
} as const

/** The path of the API keys of an environment. */
const keysOf = async (service: Client, text: string | undefined): Promise<string> => {
  if (text === undefined)
    throw new WrongUsage('env: expected the environment of the API keys, such as local/dev; or give --kind')
  return path`/operator/envs/${(await findEnv(service, text)).env_id}/api-keys`
}

const labels = { api: 'API key', service: 'service key', session: 'session' } as const

const refuseEnv = (text: string | undefined): void => {
  if (text !== undefined) throw new WrongUsage('env: expected none, because SVC_KEY selects the environment')
}

const shownOnce = (created: string, token: string): string =>
  `${onOneLine(created)}\n\n  ${token}\n\nThe token is not shown again.\n`

export const keyCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    summary: 'list the keys of an environment',
    description:
      'Lists the API keys of an environment, newest first. With --kind, it lists the service keys or the active sessions ' +
      'that SVC_KEY has issued.',
    arguments: { env },
    options: { kind },
    examples: ['svc keys list local/dev', 'svc keys list --kind service --json'],
    async run({ args, options, operator, environment, table }) {
      if (options.kind === undefined || options.kind === 'api') {
        const service = operator()
        const keys = await Array.fromAsync(service.all<ApiKey>(await keysOf(service, args.env)))
        return { json: keys, text: table(keys, apiKeyColumns) }
      }
      refuseEnv(args.env)
      return issuedKinds[options.kind].list(environment(), table)
    },
  }),
  command({
    group,
    name: 'create',
    summary: 'create a key, and print its token once',
    description:
      'Creates an API key of an environment and prints its token, which cannot be read again. Without --permissions it may ' +
      'do everything. With --kind, it issues a service key or a session of SVC_KEY.',
    arguments: { env },
    options: {
      kind,
      name: { value: 'NAME', description: 'the name of the key (default: svc)' },
      permissions: {
        value: 'JSON',
        description: 'the permission map as JSON, or @FILE with a file that contains it',
        parse: json,
      },
      'expires-in': {
        value: 'TIME',
        description: 'the lifetime of a service key or session, such as 30m or 7d',
        parse: seconds,
      },
    },
    examples: [
      'svc keys create acme/prod --name ci --permissions \'{"build:*": ["create", "execute"]}\'',
      'svc keys create --kind service --name partner --permissions @partner.json --expires-in 30d',
    ],
    async run({ args, options, operator, environment }) {
      const { name = 'svc', permissions } = options
      const given = { ...(permissions !== undefined && { permissions }) }
      if (options.kind === undefined || options.kind === 'api') {
        if (options['expires-in'] !== undefined)
          throw new WrongUsage('--expires-in: expected --kind service or session beside it')
        const service = operator()
        const keys = await keysOf(service, args.env)
        const created = await service.request<NewApiKey>('POST', keys, { body: { name, ...given } })
        return {
          json: created,
          text: shownOnce(`Created API key ${created.name} (${created.api_key_id})`, created.token),
        }
      }
      refuseEnv(args.env)
      if (permissions === undefined)
        throw new WrongUsage(`--permissions: required for --kind ${options.kind}`)
      const expires_in = options['expires-in']
      const body = { name, permissions, ...(expires_in !== undefined && { expires_in }) }
      const created = await issuedKinds[options.kind].create(environment(), body)
      return { json: created, text: shownOnce(`Created a ${labels[options.kind]}`, created.token) }
    },
  }),
  command({
    group,
    name: 'rotate',
    summary: 'replace an API key, and print the new token once',
    description:
      'Creates an API key with the same name, permissions and environment, and prints its token, which cannot be read again. ' +
      'The former key expires after the overlap: the service refuses it from then on, with its sessions and service keys. ' +
      'Without --overlap it expires at once.',
    arguments: { key },
    options: {
      overlap: {
        value: 'TIME',
        description: 'the time in which both keys are valid, such as 15m or 24h',
        parse: seconds,
      },
    },
    examples: ['svc keys rotate 0198f3a1-… --overlap 24h', 'svc keys rotate 0198f3a1-… --json'],
    async run({ args, options, operator }) {
      const service = operator()
      const target = path`/operator/api-keys/${args.key}/rotate`
      const body = { overlap_s: options.overlap ?? 0 }
      const created = await service.request<RotatedApiKey>('POST', target, { body })
      const { name, api_key_id, former, token } = created
      return {
        json: created,
        text: shownOnce(
          `Created API key ${name} (${api_key_id}); the former one expires at ${former.expires_at}`,
          token,
        ),
      }
    },
  }),
  command({
    group,
    name: 'revoke',
    summary: 'revoke a key at once',
    description:
      'Deletes an API key with its sessions and service keys, from the next request on. With --kind, it revokes a service key ' +
      'or a session of SVC_KEY.',
    arguments: { key },
    options: { kind },
    examples: ['svc keys revoke 0198f3a1-…', 'svc keys revoke 0198f3a1-… --kind service --yes'],
    confirms: true,
    async run({ args, options, operator, environment, confirm }) {
      const { kind: of = 'api' } = options
      const service = of === 'api' ? operator() : environment()
      const target = of === 'api' ? path`/operator/api-keys/${args.key}` : issuedKinds[of].pathOf(args.key)
      await confirm(`Revoke the ${labels[of]} ${args.key}?`)
      await service.request('DELETE', target)
      return { json: { revoked: args.key }, text: `Revoked ${labels[of]} ${args.key}\n` }
    },
  }),
]
