import Type from 'typebox'
import { pastOf } from '../../commands/audit/past.ts'
import { runThen, runsThen } from '../../commands/audit/pastRuns.ts'
import { clock, isoOf } from '../../clock.ts'
import { readRunLog } from '../../commands/runs/readRunLog.ts'
import { AppError } from '../../errors.ts'
import type { RunDoc } from '../../projections/runs.ts'
import { PageValues } from '../present/pageValues.ts'
import { presentListedRun, presentRun } from '../present/run.ts'
import { presentRunLog } from '../present/runLogs.ts'
import { AsOf, AsOfQuery } from '../asOf.ts'
import { type Ask, item, list, route } from '../route.ts'
import { largeListOf, pageQuery } from '../paging.ts'
import { Run, RunLogs, RunStatus, RunType } from '../schemas.ts'
import { runStatsRoute } from './runStats.ts'

const tag = 'Runs'
const needs = { type: 'run', action: 'read' }

/** Returns when a time range begins that ends now, as ISO 8601 UTC. */
const startOfRange = (duration: string): string => {
  try {
    const now = Temporal.Instant.fromEpochMilliseconds(clock.now()).toZonedDateTimeISO('UTC')
    const length = Temporal.Duration.from(duration)
    if (length.sign <= 0) throw new RangeError('not positive')
    return isoOf(now.subtract(length).epochMilliseconds)
  } catch (error) {
    throw new AppError(
      'bad_request',
      `time_range: expected an ISO 8601 duration such as P7D or PT1H, got "${duration.slice(0, 60)}"`,
      { cause: error },
    )
  }
}

const runOf = async ({ params, credential, deps: { views } }: Ask<{ run_id: string }>): Promise<RunDoc> => {
  await views.settled('runs')
  const run = await views.runs.get(params.run_id)
  if (run?.env_id !== credential.env_id) throw new AppError('not_found', `No run ${params.run_id}`)
  return run
}

export const runRoutes = [
  route({
    method: 'GET',
    path: '/v1/runs',
    operationId: 'listRuns',
    summary: 'List runs',
    tag,
    needs,
    query: pageQuery({
      status: Type.Optional(RunStatus),
      type: Type.Optional(RunType),
      time_range: Type.Optional(
        Type.String({
          description: 'Only runs of this period before now, as an ISO 8601 duration such as P7D',
          documented: { format: 'duration' },
        }),
      ),
      ...AsOf,
    }),
    reply: { kind: 'list', schema: Run },
    handle: async (ask) => {
      const { limit, offset, status, type, time_range, as_of } = ask.query
      const { env_id } = ask.credential
      const equal = { env_id, ...(status && { status }), ...(type && { run_type: type }) }
      const from = time_range === undefined ? {} : { from: startOfRange(time_range) }
      const values = new PageValues()
      if (as_of !== undefined) {
        if (status !== undefined)
          throw new AppError(
            'bad_request',
            'status: expected none with as_of, because runs had another status then',
          )
        const past = await pastOf(ask.deps, as_of)
        const { items, total } = await runsThen(ask.deps.views, past, { equal, limit, offset, ...from })
        return list(
          items.map((doc) => presentListedRun(doc, values)),
          total,
          { limit, offset },
        )
      }
      return largeListOf(ask, 'runs', { equal, limit, offset, ...from }, (doc) =>
        presentListedRun(doc, values),
      )
    },
  }),

  runStatsRoute,

  route({
    method: 'GET',
    path: '/v1/runs/:run_id',
    operationId: 'getRun',
    summary: 'Get a run',
    tag,
    needs,
    query: AsOfQuery,
    reply: { kind: 'item', schema: Run },
    handle: async (ask) => {
      const { as_of } = ask.query
      const now = await runOf(ask)
      const run = as_of === undefined ? now : await runThen(await pastOf(ask.deps, as_of), now)
      if (!run) throw new AppError('not_found', `The run ${now.run_id} had not started then`)
      return item(presentRun(run, ask.deps.payloads))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/runs/:run_id/logs',
    operationId: 'getRunLogs',
    summary: 'Get the output of a run',
    description:
      'Returns the lines of standard output and standard error in order. They appear within a second while the run ' +
      'continues, and are complete when it has ended. At most 256 KiB and 10,000 lines are stored. The output of a ' +
      'webhook run includes its request.',
    tag,
    needs,
    reply: { kind: 'item', schema: RunLogs },
    handle: async (ask) => {
      const run = await runOf(ask)
      return item(await presentRunLog(run.run_id, await readRunLog(ask.deps, run), ask.deps.payloads))
    },
  }),
]
