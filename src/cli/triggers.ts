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

interface Listed<Item> {
  /** The list of each project, as its route names it. */
  readonly name: 'schedules' | 'webhooks'
  readonly summary: string
  readonly description: string
  readonly examples: readonly string[]
  readonly columns: readonly Column<OfProject<Item>>[]
}

const listCommand = <Item>({ name, columns, ...texts }: Listed<Item>): CliCommand =>
  command({
    name,
    ...texts,
    ofEnvironment: true,
    options: { project },
    async run({ options, environment, table }) {
      const listOf = (id: string) => path`/v1/projects/${id}/${name}`
      const found = await listOfProjects<Item>(environment(), options.project, listOf)
      return { json: found, text: table(found, columns) }
    },
  })

export const triggerCommands: readonly CliCommand[] = [
  listCommand<Schedule>({
    name: 'schedules',
    summary: 'list the schedules of the deployed builds',
    description: 'Lists the functions that schedules start, with their cron expressions and time zones.',
    examples: ['svc schedules', 'svc schedules --project orders --json'],
    columns: scheduleColumns,
  }),
  listCommand<Webhook>({
    name: 'webhooks',
    summary: 'list the webhooks of the deployed builds, with their URLs',
    description:
      'Lists the webhooks of the deployed builds. The URL contains the secret token of the webhook. AUTH is required if callers ' +
      'need a key, or names the provider whose signatures are checked.',
    examples: ['svc webhooks', 'svc webhooks --json | jq -r .[0].url'],
    columns: webhookColumns,
  }),
]
