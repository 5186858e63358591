import type { Webhook } from '../client/index.ts'
import { type CliCommand, command } from './command.ts'
import { listOfProjects, type OfProject, ofProject, refOf } from './projectOption.ts'
import type { Column } from './table.ts'

const columns: readonly Column<OfProject<Webhook>>[] = [
  { title: 'PROJECT', of: (each) => each.project, cut: true },
  { title: 'FUNCTION', of: refOf, cut: true },
  { title: 'METHOD', of: ({ method }) => method },
  { title: 'AUTH', of: ({ auth, verify }) => verify?.preset ?? auth },
  { title: 'URL', of: ({ url }) => url },
]

export const webhooksCommand: CliCommand = command({
  name: 'webhooks',
  summary: 'list the webhooks of the deployed builds, with their URLs',
  description:
    'Lists the webhooks of the deployed builds. The URL contains the secret token of the webhook. AUTH is required if callers ' +
    'need a key, or names the provider whose signatures are checked.',
  ofEnvironment: true,
  options: { project: ofProject },
  examples: ['svc webhooks', 'svc webhooks --json | jq -r .[0].url'],
  async run({ options, environment, table }) {
    const service = environment()
    const found = await listOfProjects(service, options.project, {
      page: (project, query) =>
        service.request('GET /v1/projects/{project}/webhooks', { path: { project }, query }),
      idOf: ({ webhook_id }) => webhook_id,
    })
    return { json: found, text: table(found, columns) }
  },
})
