import type { ContextVariable } from '../client/index.ts'
import { isAppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { path } from './client.ts'
import { type CliCommand, command } from './command.ts'
import { findProject, project } from './projectOption.ts'
import type { Column } from './table.ts'

const group = 'secrets'
const key = { description: 'the key of the context variable, such as PAYMENT_KEY' }

const columns: readonly Column<ContextVariable>[] = [
  { title: 'KEY', of: (variable) => variable.key },
  { title: 'DESCRIPTION', of: ({ description }) => description, cut: true },
  { title: 'UPDATED', of: ({ updated_at }) => updated_at },
]

const isTaken = (error: unknown): boolean => isAppError(error) && error.data['status'] === 409

export const contextCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    summary: 'list the context variables of a project',
    description: 'Lists the keys of the context variables of a project. Their values are never returned.',
    ofEnvironment: true,
    options: { project },
    examples: ['svc secrets list', 'svc secrets list --project orders --json'],
    async run({ options, environment, table, ...here }) {
      const service = environment()
      const name = await findProject(service, options.project, { environment, ...here })
      const found = await Array.fromAsync(service.all<ContextVariable>(path`/v1/projects/${name}/context`))
      return { json: found, text: table(found, columns) }
    },
  }),
  command({
    group,
    name: 'set',
    summary: 'create or replace a context variable of a project',
    description:
      'Reads the value from a prompt that does not show it, or from the standard input without its last line break, and ' +
      'stores it encrypted. Functions read it with context(KEY).',
    ofEnvironment: true,
    arguments: { key },
    options: { project, description: { value: 'TEXT', description: 'explains the variable' } },
    examples: [
      'svc secrets set PAYMENT_KEY',
      'pass show payment | svc secrets set PAYMENT_KEY --project orders',
    ],
    async run({ args, options, environment, secret, ...here }) {
      const service = environment()
      const name = await findProject(service, options.project, { environment, ...here })
      const value = await secret(`Value of ${onOneLine(args.key)}: `)
      const { description } = options
      const body = { value, ...(description !== undefined && { description }) }
      const stored = await service
        .request<ContextVariable>('POST', path`/v1/projects/${name}/context`, {
          body: { key: args.key, ...body },
        })
        .catch((error: unknown) => {
          if (!isTaken(error)) throw error
          return service.request<ContextVariable>('PUT', path`/v1/projects/${name}/context/${args.key}`, {
            body,
          })
        })
      return { json: stored, text: `${onOneLine(`Stored ${args.key} of ${name}`)}\n` }
    },
  }),
  command({
    group,
    name: 'remove',
    summary: 'delete a context variable of a project',
    description: 'Deletes a context variable. Functions that read it fail from then on.',
    ofEnvironment: true,
    arguments: { key },
    options: { project },
    examples: ['svc secrets remove PAYMENT_KEY', 'svc secrets remove PAYMENT_KEY --project orders --yes'],
    confirms: true,
    async run({ args, options, environment, confirm, ...here }) {
      const service = environment()
      const name = await findProject(service, options.project, { environment, ...here })
      await confirm(`Delete ${args.key} of ${name}?`)
      await service.request('DELETE', path`/v1/projects/${name}/context/${args.key}`)
      return {
        json: { deleted: args.key, project: name },
        text: `${onOneLine(`Deleted ${args.key} of ${name}`)}\n`,
      }
    },
  }),
]
