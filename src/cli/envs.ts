import { type CliCommand, command } from './command.ts'
import { path } from './operator.ts'
import { type ApiKey, apiKeyColumns } from './apiKeys.ts'
import type { Column } from './table.ts'
import { type Env, ENV_ARGUMENT, envsOf, findEnv, type NamedEnv, type Org } from './tenants.ts'
import { WrongUsage } from './wrongUsage.ts'

const group = 'envs'

const columns: readonly Column<NamedEnv>[] = [
  { title: 'ORGANIZATION', of: ({ org }) => org },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'ID', of: ({ env_id }) => env_id },
  { title: 'STATUS', of: ({ importing }) => (importing ? 'importing' : 'active') },
]

/** The organization and the name of a new environment, given as one text or as two. */
const nameOf = (
  first: string,
  second: string | undefined,
): { readonly org: string; readonly name: string } => {
  const given = second === undefined ? [first] : [first, second]
  const [org, name, ...rest] = given.flatMap((text) => text.split('/'))
  if (org && name && rest.length === 0) return { org, name }
  throw new WrongUsage(
    `expected ORGANIZATION/NAME, or ORGANIZATION and NAME, of the new environment, got ${given.map((text) => `"${text}"`).join(' ')}`,
  )
}

export const envCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    summary: 'list the environments of an organization, or of all',
    description:
      'Lists the environments of an organization. Without one, it lists those of all organizations.',
    arguments: { org: { description: 'the organization: its slug or its id', count: 'optional' } },
    examples: ['svc envs list', 'svc envs list acme --json'],
    async run({ args, operator, table }) {
      const service = operator()
      const orgs =
        args.org === undefined
          ? service.all<Org>('/operator/orgs')
          : [await service.request<Org>('GET', path`/operator/orgs/${args.org}`)]
      const envs: NamedEnv[] = []
      for await (const org of orgs) envs.push(...(await envsOf(service, org)))
      return { json: envs, text: table(envs, columns) }
    },
  }),
  command({
    group,
    name: 'show',
    summary: 'show an environment and its API keys',
    description: 'Shows an environment and its API keys, without their tokens.',
    arguments: { env: ENV_ARGUMENT },
    examples: ['svc envs show local/dev'],
    async run({ args, operator, table }) {
      const service = operator()
      const env = await findEnv(service, args.env)
      const keys = await Array.fromAsync(service.all<ApiKey>(path`/operator/envs/${env.env_id}/api-keys`))
      return {
        json: { ...env, api_keys: keys },
        text: `${table([env], columns)}\n${table(keys, apiKeyColumns)}`,
      }
    },
  }),
  command({
    group,
    name: 'create',
    summary: 'create an environment',
    description:
      'Creates an environment of an organization, named ORGANIZATION/NAME or by two arguments. Its name is part of webhook ' +
      'URLs: lower-case letters, digits and hyphens. Create an API key for it with svc keys create.',
    arguments: {
      org: { description: 'the organization: its slug or its id; or ORGANIZATION/NAME such as acme/prod' },
      name: { description: 'the name of the new environment, unless it is given above', count: 'optional' },
    },
    examples: [
      'svc envs create acme/prod && svc keys create acme/prod --name ci',
      'svc envs create acme prod',
    ],
    async run({ args, operator }) {
      const named = nameOf(args.org, args.name)
      const service = operator()
      const { slug } = await service.request<Org>('GET', path`/operator/orgs/${named.org}`)
      const body = { name: named.name }
      const env = await service.request<Env>('POST', path`/operator/orgs/${slug}/envs`, { body })
      return {
        json: { ...env, org: slug },
        text: `Created environment ${slug}/${env.name} (${env.env_id})\n`,
      }
    },
  }),
  command({
    group,
    name: 'delete',
    summary: 'delete an environment with everything in it',
    description:
      'Deletes an environment. Its credentials and webhooks end at once; its projects, files, secrets, runs and events are ' +
      'removed in the background. This cannot be undone.',
    arguments: { env: ENV_ARGUMENT },
    examples: ['svc envs delete acme/stage', 'svc envs delete acme/stage --yes'],
    confirms: true,
    async run({ args, operator, confirm }) {
      const service = operator()
      const { env_id, org, name } = await findEnv(service, args.env)
      await confirm(`Delete the environment ${org}/${name} (${env_id}) with everything in it?`)
      await service.request('DELETE', path`/operator/envs/${env_id}`)
      return { json: { deleted: env_id }, text: `Deleted environment ${org}/${name} (${env_id})\n` }
    },
  }),
]
