import { type ContextVariable, ServiceError } from '../client/index.ts'
import { allPages } from '../client/lists.ts'
import { onOneLine } from '../logger.ts'
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

const isTaken = (error: unknown): boolean => error instanceof ServiceError && error.status === 409

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
      const found = await Array.fromAsync(
        allPages(
          (query) =>
            service.request('GET /v1/projects/{project}/context', { path: { project: name }, query }),
          (variable) => variable.key,
        ),
      )
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
    options: {
      project,
      description: { value: 'TEXT', description: 'explains the variable', mayBeEmpty: true },
    },
    examples: [
      'svc secrets set PAYMENT_KEY',
      'pass show payment | svc secrets set PAYMENT_KEY --project orders',
    ],
    async run({ args, options, environment, secret, ...here }) {
      const service = environment()
      const name = await findProject(service, options.project, { environment, ...here })
      const value = await secret(onOneLine(`Value of ${args.key} of ${name}: `))
      const { description } = options
      const body = { value, ...(description !== undefined && { description }) }
      const stored = await service
        .request('POST /v1/projects/{project}/context', {
          path: { project: name },
          body: { key: args.key, ...body },
        })
        .catch((error: unknown) => {
          if (!isTaken(error)) throw error
          const variable = { project: name, key: args.key }
          return service.request('PUT /v1/projects/{project}/context/{key}', { path: variable, body })
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
      await service.request('DELETE /v1/projects/{project}/context/{key}', {
        path: { project: name, key: args.key },
      })
      return {
        json: { deleted: args.key, project: name },
        text: `${onOneLine(`Deleted ${args.key} of ${name}`)}\n`,
      }
    },
  }),
]
