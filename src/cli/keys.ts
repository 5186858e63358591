import type { Client } from '../client/index.ts'
import { onOneLine } from '../logger.ts'
import { type ApiKey, apiKeyColumns, type NewApiKey, type RotatedApiKey } from './apiKeys.ts'
import { type CliCommand, command, type Invocation } from './command.ts'
import { issuedKinds } from './issued.ts'
import { type Operator, path } from './operator.ts'
import { ENV_ARGUMENT, findEnv } from './tenants.ts'
import { credentialId, json, oneOf, seconds } from './values.ts'
import { WrongUsage } from './wrongUsage.ts'

const group = 'keys'
const env = { ...ENV_ARGUMENT, count: 'optional' } as const
const key = { description: 'the id of the key', parse: credentialId }
const kind = {
  value: 'KIND',
  description:
    'api (default), service or session; the last two belong to the API key of --profile or SVC_KEY',
  parse: oneOf('api', 'service', 'session'),
} as const

/** The path of the API keys of an environment. */
const keysOf = async (service: Operator, text: string | undefined): Promise<string> => {
  if (text === undefined)
    throw new WrongUsage('env: expected the environment of the API keys, such as local/dev; or give --kind')
  return path`/operator/envs/${(await findEnv(service, text)).env_id}/api-keys`
}

const labels = { api: 'API key', service: 'service key', session: 'session' } as const

/** The environment of the keys that an API key issues. */
const issuingEnv = ({ environment }: Pick<Invocation, 'environment'>, text?: string): Client => {
  if (text !== undefined)
    throw new WrongUsage('env: expected none, because the API key selects the environment')
  return environment()
}

/** The API of the operator, which no profile names. */
const operatorOf = ({ operator, profile }: Pick<Invocation, 'operator' | 'profile'>): Operator => {
  if (profile !== undefined) throw new WrongUsage('--profile: expected --kind service or session beside it')
  return operator()
}

/** Revokes keys of a kind. It connects at once, so that a wrong usage asks no question. */
const revokerOf = (
  of: keyof typeof labels,
  here: Pick<Invocation, 'operator' | 'environment' | 'profile'>,
): ((id: string) => Promise<void>) => {
  if (of === 'api') {
    const service = operatorOf(here)
    return (id) => service.request('DELETE', path`/operator/api-keys/${id}`)
  }
  const service = issuingEnv(here)
  return (id) => issuedKinds[of].revoke(service, id)
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
      'that the API key of the environment has issued.',
    ofEnvironment: true,
    arguments: { env },
    options: { kind },
    examples: ['svc keys list local/dev', 'svc keys list --kind service --json'],
    async run({ args, options, table, ...here }) {
      if (options.kind === undefined || options.kind === 'api') {
        const service = operatorOf(here)
        const keys = await Array.fromAsync(service.all<ApiKey>(await keysOf(service, args.env)))
        return { json: keys, text: table(keys, apiKeyColumns) }
      }
      return issuedKinds[options.kind].list(issuingEnv(here, args.env), table)
    },
  }),
  command({
    group,
    name: 'create',
    summary: 'create a key, and print its token once',
    description:
      'Creates an API key of an environment and prints its token, which cannot be read again. Without --permissions it may ' +
      'do everything. With --kind, it issues a service key or a session of the API key.',
    ofEnvironment: true,
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
      'svc keys create acme/prod --name ci --permissions \'{"build:*": ["create", "read", "execute"], "project:*": ["create"]}\'',
      'svc keys create --kind service --name partner --permissions @partner.json --expires-in 30d',
    ],
    async run({ args, options, ...here }) {
      const { name = 'svc', permissions } = options
      const given = { ...(permissions !== undefined && { permissions }) }
      if (options.kind === undefined || options.kind === 'api') {
        if (options['expires-in'] !== undefined)
          throw new WrongUsage('--expires-in: expected --kind service or session beside it')
        const service = operatorOf(here)
        const keys = await keysOf(service, args.env)
        const created = await service.request<NewApiKey>('POST', keys, { body: { name, ...given } })
        return {
          json: created,
          text: shownOnce(`Created API key ${created.name} (${created.api_key_id})`, created.token),
        }
      }
      if (permissions === undefined)
        throw new WrongUsage(`--permissions: required for --kind ${options.kind}`)
      const service = issuingEnv(here, args.env)
      const expires_in = options['expires-in']
      const body = { name, permissions, ...(expires_in !== undefined && { expires_in }) }
      const created = await issuedKinds[options.kind].create(service, body)
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
      'or a session of the API key.',
    ofEnvironment: true,
    arguments: { key },
    options: { kind },
    examples: ['svc keys revoke 0198f3a1-…', 'svc keys revoke 0198f3a1-… --kind service --yes'],
    confirms: true,
    async run({ args, options, confirm, ...here }) {
      const { kind: of = 'api' } = options
      const revoke = revokerOf(of, here)
      await confirm(`Revoke the ${labels[of]} ${args.key}?`)
      await revoke(args.key)
      return { json: { revoked: args.key }, text: `Revoked ${labels[of]} ${args.key}\n` }
    },
  }),
]
