import { type CliCommand, command } from './command.ts'
import { path } from './operator.ts'
import type { Column } from './table.ts'
import { type Env, envsOf, type Org } from './tenants.ts'
import { oneOf } from './values.ts'

const group = 'orgs'
const org = { description: 'the organization: its slug or its id' }
const plan = oneOf('free', 'starter', 'pro', 'scale', 'self_host')
const PLANS = 'free, starter, pro, scale or self_host'

const columns: readonly Column<Org>[] = [
  { title: 'SLUG', of: ({ slug }) => slug },
  { title: 'NAME', of: ({ name }) => name, cut: true },
  { title: 'PLAN', of: (each) => each.plan },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'ID', of: ({ org_id }) => org_id },
]

const envColumns: readonly Column<Env>[] = [
  { title: 'ENVIRONMENT', of: ({ name }) => name },
  { title: 'ID', of: ({ env_id }) => env_id },
]

export const orgCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    summary: 'list the organizations',
    description: 'Lists the organizations, newest first.',
    examples: ['svc orgs list', 'svc orgs list --json'],
    async run({ operator, table }) {
      const orgs = await Array.fromAsync(operator().all<Org>('/operator/orgs'))
      return { json: orgs, text: table(orgs, columns) }
    },
  }),
  command({
    group,
    name: 'show',
    summary: 'show an organization and its environments',
    description: 'Shows an organization and its environments.',
    arguments: { org },
    examples: ['svc orgs show acme'],
    async run({ args, operator, table }) {
      const service = operator()
      const found = await service.request<Org>('GET', path`/operator/orgs/${args.org}`)
      const envs = await envsOf(service, found)
      return { json: { ...found, envs }, text: `${table([found], columns)}\n${table(envs, envColumns)}` }
    },
  }),
  command({
    group,
    name: 'create',
    summary: 'create an organization',
    description:
      'Creates an organization. Its slug is part of webhook URLs: lower-case letters, digits and hyphens.',
    arguments: { slug: { description: 'the slug of the new organization' } },
    options: {
      plan: { value: 'PLAN', description: PLANS, parse: plan, required: true },
      name: { value: 'NAME', description: 'the name for people (default: the slug)' },
    },
    examples: ['svc orgs create acme --plan pro --name "Acme Inc."'],
    async run({ args: { slug }, options, operator }) {
      const { name } = options
      const body = { slug, plan: options.plan, ...(name !== undefined && { name }) }
      const created = await operator().request<Org>('POST', '/operator/orgs', { body })
      return { json: created, text: `Created organization ${created.slug} (${created.org_id})\n` }
    },
  }),
  command({
    group,
    name: 'set-plan',
    summary: 'change the plan of an organization',
    description: 'Changes the plan of an organization, from its next request on.',
    arguments: { org, plan: { description: PLANS, parse: plan } },
    examples: ['svc orgs set-plan acme scale'],
    async run({ args, operator }) {
      const body = { plan: args.plan }
      const changed = await operator().request<Org>('PATCH', path`/operator/orgs/${args.org}`, { body })
      return { json: changed, text: `Organization ${changed.slug} has the plan ${changed.plan}\n` }
    },
  }),
  command({
    group,
    name: 'delete',
    summary: 'delete an organization without environments',
    description:
      'Deletes an organization. While it has environments, the command fails and names them: delete them first with svc ' +
      'envs delete. A repetition changes nothing.',
    arguments: { org },
    examples: ['svc orgs delete acme', 'svc orgs delete acme --yes'],
    confirms: true,
    async run({ args, operator, confirm }) {
      const service = operator()
      await confirm(`Delete the organization ${args.org}?`)
      await service.request('DELETE', path`/operator/orgs/${args.org}`)
      return { json: { deleted: args.org }, text: `Deleted organization ${args.org}\n` }
    },
  }),
]
