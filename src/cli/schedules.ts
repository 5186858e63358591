import type { Client, Schedule } from '../client/index.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { type CliCommand, command } from './command.ts'
import { listOfProjects, type OfProject, ofProject, refOf, severalProjects } from './projectOption.ts'
import type { Column } from './table.ts'

const group = 'schedules'
const fn = { description: 'the function of the schedule, such as reports/nightly' }

const columns: readonly Column<OfProject<Schedule>>[] = [
  { title: 'PROJECT', of: (each) => each.project, cut: true },
  { title: 'FUNCTION', of: refOf, cut: true },
  { title: 'CRON', of: ({ cron }) => cron },
  { title: 'TIMEZONE', of: ({ timezone }) => timezone },
  { title: 'NEXT', of: ({ paused, next_time }) => (paused ? 'paused' : (next_time ?? '-')) },
  { title: 'LAST', of: ({ last_time }) => last_time ?? '-' },
]

const schedulesOf = (service: Client, project: string | undefined) =>
  listOfProjects(service, project, {
    page: (name, query) =>
      service.request('GET /v1/projects/{project}/schedules', { path: { project: name }, query }),
    idOf: ({ schedule_id }) => schedule_id,
  })

/** The path of the one schedule of the function. */
const scheduleOf = async (
  service: Client,
  ref: string,
  project: string | undefined,
): Promise<{ readonly project: string; readonly schedule_id: string }> => {
  const [found, ...others] = (await schedulesOf(service, project)).filter((each) => refOf(each) === ref)
  if (!found)
    throw new AppError('not_found', onOneLine(`${ref} has no schedule; run svc schedules to list all`))
  if (others.length > 0)
    throw severalProjects(
      [found, ...others].map((each) => each.project),
      ref,
    )
  return { project: found.project, schedule_id: found.schedule_id }
}

export const scheduleCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    isDefault: true,
    summary: 'list the schedules of the deployed builds',
    description:
      'Lists the functions that schedules start, with their cron expressions, time zones, and the next and the last time.',
    ofEnvironment: true,
    options: { project: ofProject },
    examples: ['svc schedules', 'svc schedules --project orders --json'],
    async run({ options, environment, table }) {
      const found = await schedulesOf(environment(), options.project)
      return { json: found, text: table(found, columns) }
    },
  }),
  command({
    group,
    name: 'pause',
    summary: 'pause the schedule of a function',
    description:
      'Ticks start nothing until the schedule is resumed, also after deployments. Runs in progress and their retries continue.',
    ofEnvironment: true,
    arguments: { fn },
    options: { project: ofProject },
    examples: ['svc schedules pause reports/nightly'],
    async run({ args, options, environment }) {
      const service = environment()
      const path = await scheduleOf(service, args.fn, options.project)
      const json = await service.request('POST /v1/projects/{project}/schedules/{schedule_id}/pause', {
        path,
      })
      return { json, text: `${onOneLine(`Paused ${args.fn}`)}\n` }
    },
  }),
  command({
    group,
    name: 'resume',
    summary: 'resume the paused schedule of a function',
    description: 'The next tick starts the function. Ticks of the pause are not caught up.',
    ofEnvironment: true,
    arguments: { fn },
    options: { project: ofProject },
    examples: ['svc schedules resume reports/nightly'],
    async run({ args, options, environment }) {
      const service = environment()
      const path = await scheduleOf(service, args.fn, options.project)
      const json = await service.request('POST /v1/projects/{project}/schedules/{schedule_id}/resume', {
        path,
      })
      return {
        json,
        text: `${onOneLine(`Resumed ${args.fn}: the next tick is at ${json.next_time ?? '-'}`)}\n`,
      }
    },
  }),
  command({
    group,
    name: 'run',
    summary: 'start the function of a schedule now',
    description:
      'Starts the function with the event of a tick, also while its schedule is paused, and prints the run. It does not wait for its end.',
    ofEnvironment: true,
    arguments: { fn },
    options: { project: ofProject },
    examples: ['svc schedules run reports/nightly', 'svc schedules run reports/nightly --json'],
    async run({ args, options, environment }) {
      const service = environment()
      const path = await scheduleOf(service, args.fn, options.project)
      const json = await service.request('POST /v1/projects/{project}/schedules/{schedule_id}/run', {
        path,
      })
      return { json, text: `${onOneLine(`Requested ${args.fn}: run ${json.run_id}`)}\n` }
    },
  }),
]
