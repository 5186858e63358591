import type { Schedule, Webhook } from '../client/index.ts'
import { path } from './client.ts'
import { type CliCommand, command } from './command.ts'
import { listOfProjects } from './projectOption.ts'
import type { Column } from './table.ts'

type OfProject<Item> = Item & { readonly project: string }

const project = { value: 'PROJECT', description: 'only this project, by name or id (default: all)' } as const

const refOf = ({ ns, var: name }: { readonly ns: string; readonly var: string }): string => `${ns}/${name}`

const scheduleColumns: readonly Column<OfProject<Schedule>>[] = [
  { title: 'PROJECT', of: (each) => each.project, cut: true },
  { title: 'FUNCTION', of: refOf, cut: true },
  { title: 'CRON', of: ({ cron }) => cron },
  { title: 'TIMEZONE', of: ({ timezone }) => timezone },
]

const webhookColumns: readonly Column<OfProject<Webhook>>[] = [
  { title: 'PROJECT', of: (each) => each.project, cut: true },
  { title: 'FUNCTION', of: refOf, cut: true },
  { title: 'METHOD', of: ({ method }) => method },
  { title: 'AUTH', of: ({ auth, verify }) => verify?.preset ?? auth },
  { title: 'URL', of: ({ url }) => url },
]

export const triggerCommands: readonly CliCommand[] = [
  command({
    name: 'schedules',
    summary: 'list the schedules of the deployed builds',
    description: 'Lists the functions that schedules start, with their cron expressions and time zones.',
    ofEnvironment: true,
    options: { project },
    examples: ['svc schedules', 'svc schedules --project orders --json'],
    async run({ options, environment, table }) {
      const found = await listOfProjects<Schedule>(
        environment(),
        options.project,
        (name) => path`/v1/projects/${name}/schedules`,
      )
      return { json: found, text: table(found, scheduleColumns) }
    },
  }),
  command({
    name: 'webhooks',
    summary: 'list the webhooks of the deployed builds, with their URLs',
    description:
      'Lists the webhooks of the deployed builds. The URL contains the secret token of the webhook. AUTH is required if callers ' +
      'need a key, or names the provider whose signatures are checked.',
    ofEnvironment: true,
    options: { project },
    examples: ['svc webhooks', 'svc webhooks --json | jq -r .[0].url'],
    async run({ options, environment, table }) {
      const found = await listOfProjects<Webhook>(
        environment(),
        options.project,
        (name) => path`/v1/projects/${name}/webhooks`,
      )
      return { json: found, text: table(found, webhookColumns) }
    },
  }),
]
