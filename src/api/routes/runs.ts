import { pastOf } from '../../commands/audit/past.ts'
import { runThen } from '../../commands/audit/pastRuns.ts'
import { explainRun } from '../../commands/runs/explainRun.ts'
import { readRunInput } from '../../commands/runs/readRunInput.ts'
import { MOST_NODES, traceOf } from '../../commands/runs/traceOf.ts'
import { readRunLog } from '../../commands/runs/readRunLog.ts'
import { AppError } from '../../errors.ts'
import type { RunDoc } from '../../projections/runs.ts'
import { presentRun } from '../present/run.ts'
import { presentRunInput } from '../present/runInput.ts'
import { presentTrace } from '../present/trace.ts'
import { DOCUMENT_BYTES } from '../http/memory.ts'
import { holding } from '../../loops/byteBudget.ts'
import { presentRunLog } from '../present/runLogs.ts'
import { AsOfQuery } from '../asOf.ts'
import { type Ask, item, route } from '../route.ts'
import { Run, RunExplanation, RunInput, RunLogs, RunTrace } from '../schemas.ts'
import { runListRoute } from './runList.ts'
import { runStatsRoute } from './runStats.ts'

const tag = 'Runs'
const needs = { type: 'run', action: 'read' }

const runOf = async ({ params, credential, deps: { views } }: Ask<{ run_id: string }>): Promise<RunDoc> => {
  await views.settled('runs')
  const run = await views.runs.get(params.run_id)
  if (run?.env_id !== credential.env_id) throw new AppError('not_found', `No run ${params.run_id}`)
  return run
}

/** Whether the caller may see the event of a run. */
export const mayReadEvents = ({ credential: { permissions } }: Pick<Ask, 'credential'>): boolean =>
  permissions.allows('event', 'read')

export const runRoutes = [
  runListRoute,
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
    path: '/v1/runs/:run_id/input',
    operationId: 'getRunInput',
    summary: 'Get the input of a run',
    description:
      'A retry and a replay have the input of the first run. Without the permission `event:read`, `event` and `value` of an ' +
      'event are null.',
    tag,
    needs,
    reply: { kind: 'item', schema: RunInput },
    handle: async (ask) => {
      const run = await runOf(ask)
      const { run_id } = run
      const input = await readRunInput(ask.deps, run)
      if (input?.kind === 'event' && !mayReadEvents(ask))
        return item({ run_id, kind: 'event', event: null, value: null, cleared: false })
      return item(await presentRunInput(run_id, input, ask.deps.payloads))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/runs/:run_id/trace',
    operationId: 'getRunTrace',
    summary: 'Get the events and runs around a run as a tree',
    description:
      'The tree begins with the event that started the run, or the run that called it. Below an event are the runs it ' +
      'started, with their retries; below a run are the runs that it called and the events that it sent. ' +
      `It has at most ${MOST_NODES} events and runs.`,
    tag,
    needs: [needs, { type: 'event', action: 'read' }],
    reply: { kind: 'item', schema: RunTrace },
    handle: async (ask) => {
      const { views, memory } = ask.deps
      await views.settled('events')
      const run = await runOf(ask)
      const owner = memory.ownerOf(run.env_id)
      const bytes = MOST_NODES * DOCUMENT_BYTES
      return holding(memory.values, { owner, bytes }, async () =>
        item(presentTrace(run.run_id, await traceOf(views, run))),
      )
    },
  }),

  route({
    method: 'GET',
    path: '/v1/runs/:run_id/why',
    operationId: 'explainRun',
    summary: 'Explain why a run started, and how it ended',
    description:
      'The sentences name the type of the event and the credential that requested the run only if the credential may read events.',
    tag,
    needs,
    reply: { kind: 'item', schema: RunExplanation },
    handle: async (ask) => {
      await ask.deps.views.settled('events')
      const run = await runOf(ask)
      const { why, outcome } = await explainRun(ask.deps, run, { mayReadEvents: mayReadEvents(ask) })
      return item({ run_id: run.run_id, why, outcome })
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
