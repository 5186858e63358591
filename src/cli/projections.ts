import { setTimeout as delay } from 'node:timers/promises'
import { counted } from '../text/counted.ts'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import type { ReadModelStatus } from '../projections/readModelStatus.ts'
import type { Operator } from './operator.ts'
import { type CliCommand, command, type Invocation } from './command.ts'
import { count } from './figures.ts'
import { continuing } from './unanswered.ts'

const PATH = '/operator/projections'
/** The interval at which the progress is read. */
const LOOK_MS = 500
const CONTINUES = 'the rebuild continues then: see svc projections status'

type Status = readonly ReadModelStatus[]

const isRebuilding = ({ rebuild }: ReadModelStatus): boolean =>
  rebuild !== null && rebuild.state !== 'done' && rebuild.state !== 'failed'

const rebuildText = ({ rebuild }: ReadModelStatus): string => {
  if (rebuild === null) return ''
  const { state, ended_at, differences, behind, error, from_version } = rebuild
  const served = from_version === null ? '' : `, version ${from_version} is served`
  if (state === 'failed') return `failed: ${error ?? ''}${served}`
  const waits = error === null ? '' : `, ${error}`
  if (state !== 'done')
    return `${state}${behind === null ? '' : `, ${counted(behind, 'event', count(behind))} left`}${served}${waits}`
  return `done ${ended_at ?? ''}${differences === null ? '' : `, ${counted(differences, 'difference', count(differences))}`}`
}

const tableOf = (rows: Status, table: Invocation['table']): string =>
  table(rows, [
    { title: 'READ MODEL', of: ({ name }) => name },
    { title: 'VERSION', of: ({ version }) => String(version) },
    { title: 'STATE', of: ({ state }) => state },
    { title: 'BEHIND', of: ({ behind }) => (behind === null ? null : count(behind)), align: 'right' },
    { title: 'DOCUMENTS', of: ({ documents }) => count(documents), align: 'right' },
    { title: 'REBUILD', of: rebuildText },
  ])

/** The named read models, or all. */
const statusOf = async (service: Operator, names: readonly string[] = []): Promise<Status> => {
  const all = await service.request<Status>('GET', PATH)
  const wanted = new Set(names.map((name) => name.replace(/@\d+$/, '')))
  const unknown = [...wanted].find((name) => !all.some((each) => each.name === name))
  if (unknown !== undefined)
    throw new AppError(
      'not_found',
      `There is no read model "${unknown}". Use one of: ${all.map(({ name }) => name).join(', ')}`,
    )
  return wanted.size === 0 ? all : all.filter(({ name }) => wanted.has(name))
}

/** A later request may have replaced the verified rebuild, and a node of an earlier build may have ended it without. */
const isUncompared = ({ rebuild }: ReadModelStatus): boolean =>
  rebuild?.state !== 'failed' && (rebuild?.differences ?? null) === null

const uncomparedOf = (rows: Status): string =>
  rows.map(({ name }) => `The documents of ${name} were not compared: repeat the command\n`).join('')

const differencesOf = (rows: Status): string =>
  rows
    .flatMap(({ name, rebuild }) =>
      (rebuild?.first_differences ?? []).flatMap(({ id, before, after }) => [
        `${name} ${id}`,
        `  before ${JSON.stringify(before)}`,
        `  after  ${JSON.stringify(after)}`,
      ]),
    )
    .map((line) => `${onOneLine(line)}\n`)
    .join('')

export const projectionCommands: readonly CliCommand[] = [
  command({
    group: 'projections',
    name: 'list',
    summary: 'list the read models with their positions and rebuilds',
    description:
      'Lists every read model: its state, the events that it lacks, its documents and its last rebuild.',
    examples: ['svc projections list', 'svc projections list --json'],
    async run({ operator, table }) {
      const rows = await statusOf(operator())
      return { json: rows, text: tableOf(rows, table) }
    },
  }),
  command({
    group: 'projections',
    name: 'status',
    summary: 'show read models with the differences that a rebuild has found',
    description:
      'Shows read models like `svc projections list`, and the first documents that differed in the last rebuild of each.',
    arguments: { name: { description: 'the read models; all of them if none is named', count: 'any' } },
    examples: ['svc projections status', 'svc projections status runs events --json'],
    async run({ args, operator, table }) {
      const rows = await statusOf(operator(), args.name)
      return { json: rows, text: tableOf(rows, table) + differencesOf(rows) }
    },
  }),
  command({
    group: 'projections',
    name: 'rebuild',
    summary: 'rebuild read models from the log while they are served',
    description:
      'Builds new documents beside those that are served. They take their place when they contain the same events, so ' +
      'requests never see a gap. The rebuild continues after a restart of the service, also when this command has ended. ' +
      'With --verify, all documents are compared first. Documents that differ or were not compared make the exit code 1.',
    arguments: { name: { description: 'the read models; all of them if none is named', count: 'any' } },
    options: {
      verify: { description: 'compare the new documents with the served ones' },
      'no-wait': { description: 'return when the rebuild is requested' },
    },
    examples: ['svc projections rebuild runs', 'svc projections rebuild --verify'],
    async run({ args, options, operator, progress, table, signal }) {
      const service = operator()
      const body = { names: args.name, verify: options.verify }
      await service.request('POST', `${PATH}/rebuild`, { body })
      let rows = await continuing(statusOf(service, args.name), CONTINUES)
      const bar = progress('events')
      let most = 0
      let tookMs = 0
      while (rows.some(isRebuilding) && !options['no-wait']) {
        const left = rows.reduce((sum, { rebuild }) => sum + (rebuild?.behind ?? 0), 0)
        most = Math.max(most, left)
        const current = rows.filter(isRebuilding)
        const known = current.every(({ rebuild }) => rebuild?.behind !== null)
        bar.report(
          most - left,
          known ? most : null,
          `${current.length} of ${counted(rows.length, 'read model')}`,
        )
        await delay(Math.max(LOOK_MS, tookMs), undefined, { signal }) // each reply counts all documents
        const asked = clock.monotonic()
        rows = await continuing(statusOf(service, args.name), CONTINUES)
        tookMs = clock.monotonic() - asked
      }
      bar.end()
      const uncompared = options.verify && !options['no-wait'] ? rows.filter(isUncompared) : []
      const failed =
        uncompared.length > 0 ||
        rows.some(({ rebuild }) => rebuild?.state === 'failed' || (rebuild?.differences ?? 0) > 0)
      const text = tableOf(rows, table) + differencesOf(rows) + uncomparedOf(uncompared)
      return { json: rows, text, failed }
    },
  }),
  command({
    group: 'projections',
    name: 'cancel',
    summary: 'cancel the rebuilds of read models',
    description:
      'Ends rebuilds that wait or work, for example for room on the disk. Their new documents are removed, and the former ones ' +
      'are served. A rebuild that already replaces the documents is completed. Waits until the rebuilds have ended. The ' +
      'rebuild after an upgrade begins again at the next start.',
    arguments: { name: { description: 'the read models; all of them if none is named', count: 'any' } },
    options: { 'no-wait': { description: 'return when the end is requested' } },
    examples: ['svc projections cancel runs', 'svc projections cancel'],
    async run({ args, options, operator, table, signal }) {
      const service = operator()
      await service.request('POST', `${PATH}/cancel`, { body: { names: args.name } })
      let rows = await statusOf(service, args.name)
      while (rows.some(isRebuilding) && !options['no-wait']) {
        await delay(LOOK_MS, undefined, { signal })
        rows = await statusOf(service, args.name)
      }
      return { json: rows, text: tableOf(rows, table) }
    },
  }),
]
