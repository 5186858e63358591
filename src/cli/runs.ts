import { setTimeout as delay } from 'node:timers/promises'
import { type Client, type Run, type RunLogs, ServiceError } from '../client/index.ts'
import { type CliCommand, command, type Invocation, type Result } from './command.ts'
import { dashboardPage } from './dashboardPage.ts'
import { ifFound } from './deployBundle.ts'
import { projectWith, unknownFunction } from './functions.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { packageProject } from './projectOption.ts'
import { errorText, prettyJson, runColumns, runText } from './runText.ts'
import { take } from './take.ts'
import {
  DEFAULT_LIMIT,
  idempotencyKey,
  idOf,
  INPUT,
  jsonOrInput,
  limit,
  oneOf,
  parsedJson,
  seconds,
} from './values.ts'
import { WrongUsage } from './wrongUsage.ts'

/** The interval at which new lines of output are read. */
const LOOK_MS = 500

const runArgument = { description: 'the id of the run', parse: idOf('a run') }
const status = {
  value: 'STATUS',
  description: 'running, succeeded, failed, cancelled or pending_retry',
  parse: oneOf('running', 'succeeded', 'failed', 'cancelled', 'pending_retry'),
} as const
const type = {
  value: 'TYPE',
  description: 'call, event, schedule, run, eval or repl',
  parse: oneOf('call', 'event', 'schedule', 'run', 'eval', 'repl'),
} as const
const noWait = { 'no-wait': { description: 'return when the run is requested' } }

/** Where a person sees the run with its input, its output and its retries. */
const pageOf = ({ run_id }: Pick<Run, 'run_id'>, url: string): string => dashboardPage(url, `runs/${run_id}`)

const CANCELLABLE: ReadonlySet<Run['status']> = new Set(['running', 'pending_retry'])

/** Whether no attempt of the run is open. */
const hasEnded = async (api: Client, { run_id, status }: Run, signal: AbortSignal): Promise<boolean> => {
  if (status !== 'failed') return true
  const { data } = await api.runs.list({ chain: run_id, final: 'true', limit: 1, signal })
  return data.length > 0
}

const isOver = ({ status }: Run): boolean => status !== 'running'

/** Waits for a run, and prints its result or its error. */
const outcomeOf = async (
  ended: Promise<Run>,
  { waiting, paint, url }: Pick<Invocation, 'waiting' | 'paint' | 'url'>,
  label: string,
): Promise<Result> => {
  waiting(label)
  const run = await ended
  if (run.status === 'succeeded') return { json: run, text: prettyJson(run.result) }
  const text = run.error ? errorText(run.error, paint) : `The run was ${run.status}\n`
  return { json: run, text: `${text}run ${run.run_id}\n${pageOf(run, url())}\n`, failed: true }
}

/** The refusal of a call with the names of the command instead of the fields of the event. */
const asGiven = (error: ServiceError): AppError =>
  new AppError(
    'bad_request',
    error.message
      .replace(/^event_data\.project:/, '--project:')
      .replace(/^event_data\.fn:/, 'ref:')
      .replace(/^event_data\.args:/, 'args:'),
    { cause: error },
  )

export const runCommands: readonly CliCommand[] = [
  command({
    name: 'run',
    summary: 'run a function and print its result',
    description:
      'Runs a function in the background, waits for its end and its retries, and prints its result as JSON. A failed run ' +
      'ends with exit code 1, and its error is printed with its place in the source. Ctrl-C stops the wait, not the run. ' +
      'With --json, the run is printed.',
    ofEnvironment: true,
    arguments: {
      ref: { description: 'the function, such as orders.pipeline/charge' },
      args: {
        description: 'its arguments as JSON, each also as @FILE, or - for the standard input',
        count: 'any',
        parse: jsonOrInput,
      },
    },
    options: {
      project: {
        value: 'PROJECT',
        description:
          'the project of the function (default: that of the folder if it has it, else the only one)',
      },
      'idempotency-key': idempotencyKey('returns the same run'),
      ...noWait,
    },
    examples: [
      `svc run orders.pipeline/charge '{"id": 7}' 3`,
      'svc run orders.pipeline/charge @order.json --json',
    ],
    async run({ args: { ref, args }, options, client, environment, folderProject, input, signal, ...shown }) {
      if (args.filter((each) => each === INPUT).length > 1)
        throw new WrongUsage('args: expected - once, because the standard input is read once')
      const values = await Promise.all(
        args.map(async (each) => (each === INPUT ? parsedJson(await input()) : each)),
      )
      const { 'idempotency-key': key } = options
      const project =
        options.project ?? (await projectWith(client(), ref, folderProject() ?? packageProject('.')))
      const given = {
        signal,
        ...(project !== undefined && { project }),
        ...(key !== undefined && { idempotencyKey: key }),
      }
      const call = client().callWith<string>(ref, values, given)
      const event = await call.catch(async (error: unknown) => {
        if (!(error instanceof ServiceError && error.code === 'bad_request')) throw error
        throw (await unknownFunction(environment(), ref, options.project)) ?? asGiven(error)
      })
      if (options['no-wait'])
        return { json: event, text: `Requested ${onOneLine(ref)}: stream ${event.stream_id}\n` }
      return outcomeOf(call.ended({ signal }), shown, `running ${ref}`)
    },
  }),
  command({
    name: 'replay',
    summary: 'run a function again with the input of a run',
    description:
      'Starts a new run with the function and the input of a run, on the build that is deployed now. Waits for its end and ' +
      'prints its result, as svc run does.',
    ofEnvironment: true,
    arguments: { run: runArgument },
    options: noWait,
    examples: ['svc replay RUN_ID', 'svc replay RUN_ID --no-wait --json'],
    async run({ args, options, client, signal, ...shown }) {
      const call = client().runs.replay(args.run, { signal })
      const event = await call
      if (options['no-wait'])
        return { json: event, text: `Requested a replay of ${args.run}: stream ${event.stream_id}\n` }
      return outcomeOf(call.ended({ signal }), shown, `replaying ${args.run}`)
    },
  }),
  command({
    name: 'cancel',
    summary: 'cancel a run and its retries',
    description:
      'Cancels a run that is running, waits for a worker or waits for its next attempt. If it has failed, cancels the attempt ' +
      'that follows it. A run that has ended is refused.',
    ofEnvironment: true,
    arguments: { run: runArgument },
    examples: ['svc cancel RUN_ID'],
    async run({ args, client, signal }) {
      const api = client()
      const run = await ifFound(api.runs.get(args.run, { signal })) // one that waits for a worker may not be found
      if (run && !CANCELLABLE.has(run.status) && (await hasEnded(api, run, signal)))
        throw new AppError('bad_request', `the run has ended: it is ${run.status}`)
      const path = { run_id: args.run }
      const event = await api.request('POST /v1/runs/{run_id}/cancel', { path, signal })
      return { json: event, text: `Requested the cancellation of ${args.run}\n` }
    },
  }),
  command({
    name: 'runs',
    summary: 'list the runs, newest first',
    description: 'Lists the runs of the environment, newest first. All filters apply together.',
    ofEnvironment: true,
    options: {
      status,
      type,
      project: { value: 'PROJECT', description: 'only runs of this project, by name or id' },
      function: { value: 'REF', description: 'only runs of this function, such as orders.pipeline/charge' },
      stream: { value: 'ID', description: 'only runs of this stream', parse: idOf('a stream') },
      event: {
        value: 'ID',
        description: 'only runs that this event started, with their retries',
        parse: idOf('an event'),
      },
      chain: { value: 'RUN_ID', description: 'only the attempts of this run', parse: idOf('a run') },
      error: { value: 'CODE', description: 'only runs with this error.code, such as timeout' },
      text: { value: 'TEXT', description: 'only runs whose function or error message contains this text' },
      final: { description: 'only runs that have ended and are not retried' },
      since: {
        value: 'TIME',
        description: 'only runs of this time before now, such as 30m or 2h',
        parse: seconds,
      },
      limit,
    },
    examples: ['svc runs', 'svc runs --status failed --since 2h', 'svc runs --limit 5 --json'],
    async run({ options: { limit: most = DEFAULT_LIMIT, since, ...given }, client, table, signal }) {
      const {
        status: state,
        type: kind,
        project,
        function: fn,
        stream,
        event,
        chain,
        error,
        text,
        final,
      } = given
      const filters = {
        ...(state !== undefined && { status: state }),
        ...(kind !== undefined && { type: kind }),
        ...(project !== undefined && { project }),
        ...(fn !== undefined && { fn }),
        ...(stream !== undefined && { stream }),
        ...(event !== undefined && { event }),
        ...(chain !== undefined && { chain }),
        ...(error !== undefined && { error_code: error }),
        ...(text !== undefined && { text }),
        ...(final && { final: 'true' as const }),
        ...(since !== undefined && { time_range: `PT${since}S` }),
        signal,
      }
      const runs = await take(client().runs.all(filters), most)
      return { json: runs, text: table(runs, runColumns) }
    },
  }),
  command({
    name: 'show',
    summary: 'show a run with its result or error',
    description:
      'Shows a run: its function, its attempt, its times, and its result or its error with the stack.',
    ofEnvironment: true,
    arguments: { run: runArgument },
    examples: ['svc show RUN_ID', 'svc show RUN_ID --json'],
    async run({ args, client, paint, signal, url }) {
      const run = await client().runs.get(args.run, { signal })
      return { json: run, text: runText(run, pageOf(run, url()), paint) }
    },
  }),
  command({
    name: 'why',
    summary: 'explain why a run started, and how it ended',
    description:
      'Explains in sentences what started a run, which credential requested it, and how it ended, and prints its page in the dashboard.',
    ofEnvironment: true,
    arguments: { run: runArgument },
    examples: ['svc why RUN_ID', 'svc why RUN_ID --json | jq -r .outcome'],
    async run({ args, client, signal, url }) {
      const path = { run_id: args.run }
      const explained = await client().request('GET /v1/runs/{run_id}/why', { path, signal })
      const { why, outcome } = explained
      const lines = [...why, outcome, pageOf(explained, url())]
      return { json: explained, text: lines.map((line) => `${onOneLine(line)}\n`).join('') }
    },
  }),
  command({
    name: 'logs',
    summary: 'print the output of a run',
    description:
      'Prints what a run has written to its standard output and standard error. With --follow, it prints further lines ' +
      'until the run has ended. With --json, each line is one object.',
    ofEnvironment: true,
    arguments: { run: runArgument },
    options: { follow: { short: 'f', description: 'print further lines until the run has ended' } },
    examples: ['svc logs RUN_ID', 'svc logs RUN_ID -f', 'svc logs RUN_ID --json | jq -r .text'],
    async run({ args, options, client, print, paint, signal }) {
      const service = client()
      try {
        const run = await service.runs.get(args.run, { signal })
        for await (const line of linesOf(service, run, options.follow, signal)) {
          const { timestamp, source, text } = line
          const shown = source === 'stderr' ? paint('yellow', onOneLine(text)) : onOneLine(text)
          await print({ json: line, text: `${timestamp}  ${shown}\n` })
        }
      } catch (error) {
        if (!options.follow || !signal.aborted) throw error // else it was followed to its end
      }
    },
  }),
]

type LogLine = RunLogs['lines'][number]

/** The lines of a run. While it is followed, its state is read before its lines, so no last line is missing. */
async function* linesOf(
  { runs }: Client,
  { run_id }: Run,
  follow: boolean,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void, undefined> {
  for (let seen = 0; ;) {
    const isLast = !follow || isOver(await runs.get(run_id, { signal }))
    const { lines } = await runs.logs(run_id, { signal })
    yield* lines.slice(seen)
    seen = lines.length
    if (isLast) return
    await delay(LOOK_MS, undefined, { signal })
  }
}
