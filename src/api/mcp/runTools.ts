import Type, { type Static, type TObject } from 'typebox'
import { explainRun } from '../../commands/runs/explainRun.ts'
import { findRun } from '../../commands/runs/findRun.ts'
import { AppError, isAppError } from '../../errors.ts'
import { REPLAY } from '../../events/eventType.ts'
import { isId } from '../../ids.ts'
import type { RunDoc } from '../../projections/runs.ts'
import { presentListedEvent } from '../present/event.ts'
import { PageValues } from '../present/pageValues.ts'
import { presentListedRun } from '../present/run.ts'
import { type Ask, type CredentialRoute } from '../route.ts'
import { runControlRoutes } from '../routes/runControl.ts'
import { mayReadEvents, runRoutes } from '../routes/runs.ts'
import type { TraceNode } from '../schemas.ts'
import { type ApiTool, apiTool, routeIn, use, withoutStored } from './tool.ts'

const readsRuns = [{ type: 'run', action: 'read' }] as const

const Run = { run_id: Type.String({ description: 'The id of the run' }) }

/** The parameters of an endpoint as arguments. `as_of` is left out: past states need more memory than a tool has. */
export const argumentsOf = ({ query }: CredentialRoute): TObject => {
  const { as_of: _, ...properties } = query?.properties ?? {}
  return Type.Object(
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)])),
  )
}

const listRuns = routeIn(runRoutes, 'listRuns')

/** Throws `not_found` for a run of another environment too (I7). */
const runFor = async ({ deps, credential: { env_id } }: Ask, run_id: string): Promise<RunDoc> => {
  const run = isId(run_id) ? await findRun(deps, run_id, env_id) : null
  if (run) return run
  throw new AppError('not_found', `No run ${JSON.stringify(run_id.slice(0, 80))}`)
}

/** Part of a run that may no longer be stored, or that the credential may not read. */
const part = async (operationId: string, ask: Ask, run_id: string) => {
  const data = await use(routeIn(runRoutes, operationId), ask, { params: { run_id } })
  return withoutStored(data, `/v1/runs/${run_id}/${operationId === 'getRunInput' ? 'input' : 'logs'}`)
}

/** Bytes of a log that an agent receives: it reads a result as a whole, and a log has 10,000 lines. */
const LOG_BYTES = 32 * 1024

type Node = Static<typeof TraceNode>

/** Characters of an error in a trace: an agent reads the whole error with the run of its node. */
const TRACE_ERROR_CHARACTERS = 200

/** The trace of a run, whose hundred errors could otherwise be larger than the result of a tool. */
const traceOf = async (ask: Ask, run_id: string) => {
  const trace = await use(routeIn(runRoutes, 'getRunTrace'), ask, { params: { run_id } })
  return { ...trace, root: withShortErrors(trace['root'] as Node) }
}

const withShortErrors = (node: Node): Node => {
  const children = (node.children as readonly Node[]).map(withShortErrors)
  if (!node.run?.error) return { ...node, children }
  const { code, message } = node.run.error
  const short =
    message.length <= TRACE_ERROR_CHARACTERS
      ? message
      : `${message.slice(0, TRACE_ERROR_CHARACTERS).toWellFormed()}…`
  return { ...node, children, run: { ...node.run, error: { code, message: short } } }
}

interface LogLine {
  readonly timestamp: string
  readonly source: string
  readonly text: string
}

/** The newest lines, because a run fails at its end, and the number of earlier ones. */
const newestLines = (lines: readonly LogLine[]) => {
  let bytes = 0
  let from = lines.length
  for (; from > 0; from--) {
    bytes += Buffer.byteLength(JSON.stringify(lines[from - 1]))
    if (bytes > LOG_BYTES) break
  }
  return { lines: lines.slice(from), left_out: from }
}

const logsOf = async (ask: Ask, run_id: string) => {
  const logs = await part('getRunLogs', ask, run_id)
  const { lines, left_out } = newestLines(logs['lines'] as readonly LogLine[])
  return {
    ...logs,
    lines,
    ...(left_out > 0 && { earlier_lines: left_out, href: `/v1/runs/${run_id}/logs` }),
  }
}

/** Runs in one replay. Each of them counts against the quota, and a plan may allow 20 requests in a second. */
const MAX_REPLAYED = 20

const runIds = Type.Array(Type.String(), {
  minItems: 1,
  maxItems: MAX_REPLAYED,
  description: 'The ids of the runs, for example from list_runs',
})

/** What a replay of a run would do now. */
const previewOf = async (ask: Ask, run_id: string) => {
  try {
    const run = await runFor(ask, run_id)
    const { fn, status, project_id, project_name, build_id } = run
    const deployed =
      fn === null
        ? undefined
        : ask.deps.views.directory.functionAt(ask.credential.env_id, fn, project_id)?.build.build_id
    const reason =
      fn === null
        ? 'evaluated code has no function'
        : deployed === undefined
          ? 'the deployed build has no such function'
          : !run.input_at
            ? 'its input is no longer stored'
            : undefined
    return {
      run_id,
      fn,
      project_name,
      status,
      ran_on_build_id: build_id,
      replays_on_build_id: deployed ?? null,
      replayable: reason === undefined,
      ...(reason !== undefined && { reason }),
    }
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    return { run_id, replayable: false, reason: error.message }
  }
}

const replay = async (ask: Ask, run_id: string) => {
  try {
    const event = await use(routeIn(runControlRoutes, 'replayRun'), ask, { params: { run_id } })
    return { run_id, replayed: true, event_id: event['event_id'] }
  } catch (error) {
    if (!isAppError(error) || error.status >= 500) throw error
    return { run_id, replayed: false, reason: `${error.code}: ${error.message}` }
  }
}

export const runTools: readonly ApiTool[] = [
  apiTool({
    name: 'list_runs',
    title: 'List runs',
    description: `Finds runs, the newest first. ${listRuns.description ?? ''}`,
    needs: readsRuns,
    readOnly: true,
    input: argumentsOf(listRuns),
    call: (ask, query) => use(listRuns, ask, { query }),
  }),
  apiTool({
    name: 'get_run',
    title: 'Get a run',
    description:
      'Returns one run with its input, its newest log lines and, if the key may read events, the tree of events and runs ' +
      'around it. Otherwise, an input that is an event is null. `earlier_lines` counts the log lines that are left out. ' +
      'The error of a failed run has `location` with the file, line and column in the source, and the source line.',
    needs: readsRuns,
    readOnly: true,
    input: Type.Object(Run),
    call: async (ask, { run_id }) => {
      const doc = await runFor(ask, run_id)
      await ask.deps.views.settled('events')
      return {
        run: presentListedRun(doc, new PageValues()),
        input: await part('getRunInput', ask, run_id),
        logs: await logsOf(ask, run_id),
        ...(mayReadEvents(ask) && {
          trace: await traceOf(ask, run_id),
        }),
      }
    },
  }),
  apiTool({
    name: 'why',
    title: 'Why did this run?',
    description:
      'Explains in sentences why a run started (its event, caller, schedule, retry or replay) and how it ended, with the ' +
      'place in the source if it failed.',
    needs: readsRuns,
    readOnly: true,
    input: Type.Object(Run),
    call: async (ask, { run_id }) => {
      const run = await runFor(ask, run_id)
      await ask.deps.views.settled('events')
      const explained = await explainRun(ask.deps, run, { mayReadEvents: mayReadEvents(ask) })
      const { why, outcome, event } = explained
      const values = new PageValues()
      return { run_id, why, outcome, ...(event && { event: presentListedEvent(event, values) }) }
    },
  }),
  apiTool({
    name: 'replay_runs',
    title: 'Replay runs',
    description:
      'Runs functions again with the input of earlier runs, on the builds that are deployed now. Without `confirm` it ' +
      'changes nothing and returns a preview; repeat the call with the same `run_ids` and `confirm: true` to replay them.',
    needs: [...readsRuns, { type: 'event', action: 'create', path: REPLAY }],
    readOnly: false,
    input: Type.Object({
      run_ids: runIds,
      confirm: Type.Optional(
        Type.Boolean({ description: 'true: replay the runs. Default: only return the preview' }),
      ),
    }),
    call: async (ask, { run_ids, confirm = false }) => {
      await ask.deps.views.settled('builds')
      const runs = []
      for (const run_id of new Set(run_ids)) {
        const preview = await previewOf(ask, run_id)
        runs.push(confirm && preview.replayable ? { ...preview, ...(await replay(ask, run_id)) } : preview)
      }
      return { preview: !confirm, runs }
    },
  }),
]
