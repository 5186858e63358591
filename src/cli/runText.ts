import type { Run, RunStatus } from '../client/index.ts'
import { onOneLine } from '../logger.ts'
import { duration } from './figures.ts'
import { type Column, fieldsOf } from './table.ts'
import type { Colour, Paint } from './terminal.ts'

const colours: Readonly<Record<RunStatus, Colour>> = {
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'gray',
  pending_retry: 'yellow',
}

interface Times {
  readonly start_time: string | null
  readonly stop_time: string | null
}

/** The function of a run, or its kind. */
export const workOf = ({ fn, run_type }: Pick<Run, 'fn' | 'run_type'>): string => fn ?? run_type

const timeOf = ({ start_time, stop_time }: Times): string | null =>
  stop_time && start_time ? duration(Date.parse(stop_time) - Date.parse(start_time)) : null

export const runColumns: readonly Column<Run>[] = [
  { title: 'STARTED', of: ({ start_time }) => start_time },
  { title: 'STATUS', of: ({ status }) => status, colour: ({ status }) => colours[status] },
  { title: 'FUNCTION', of: workOf, cut: true },
  { title: 'TRY', of: ({ attempt }) => attempt, align: 'right' },
  { title: 'TIME', of: timeOf, align: 'right' },
  { title: 'ERROR', of: ({ error }) => error && headOf(error), cut: true },
  { title: 'ID', of: ({ run_id }) => run_id },
]

type Failure = NonNullable<Run['error']>
type Cause = Pick<Failure, 'message' | 'name' | 'stack'> & {
  readonly cause?: unknown
  /** Those of an `AggregateError`. */
  readonly errors?: unknown
}

const headOf = ({ name, message }: Cause): string =>
  name === undefined || name === 'Error' ? message : `${name}: ${message}`

/** Levels of causes that are shown. */
const MAX_CAUSES = 5

/** The causes of an error and the errors that it collects, each on a line below its own. */
const causesOf = ({ cause, errors }: Cause, level = 1): readonly string[] => {
  if (level > MAX_CAUSES) return []
  const below = (word: string, next: Cause) => [
    `${'  '.repeat(level)}${word} ${onOneLine(headOf(next))}`,
    ...causesOf(next, level + 1),
  ]
  return [
    ...(Array.isArray(errors)
      ? (errors as readonly Cause[]).flatMap((each, n) => below(`error ${n + 1}:`, each))
      : []),
    ...(cause === undefined || cause === null ? [] : below('caused by', cause as Cause)),
  ]
}

/** The error of a run on lines of their own, first its place in the source of the user. */
export const errorText = (error: Failure, paint: Paint): string => {
  const { code, location } = error
  const place = location && `${location.file}:${location.line}:${location.column}`
  const lines = [
    paint(
      'red',
      onOneLine(
        [place, headOf(error), code === 'function_failed' ? '' : `(${code})`].filter(Boolean).join(' '),
      ),
    ),
    ...(location?.snippet === undefined
      ? []
      : [`  ${location.line} | ${onOneLine(location.snippet.trimEnd())}`]),
    ...causesOf(error),
  ]
  return `${lines.join('\n')}\n`
}

/** JSON on several lines, in which a terminal finds nothing to obey. */
export const prettyJson = (value: unknown): string =>
  `${JSON.stringify(value ?? null, null, 2)
    .split('\n')
    .map(onOneLine)
    .join('\n')}\n`

/** The fields of a run with its page in the dashboard, then its error or its result. */
export const runText = (run: Run, page: string, paint: Paint): string =>
  fieldsOf({
    run: run.run_id,
    function: workOf(run),
    project: run.project_name,
    status: run.status,
    attempt: String(run.attempt),
    started: run.start_time,
    stopped: run.stop_time,
    'retried at': run.retry_at,
    type: run.run_type,
    stream: run.stream_id,
    event: run.event_id,
    'parent run': run.parent_run_id,
    'first attempt': run.origin_run_id,
    'replay of': run.replay_of,
    build: run.build_id,
    dashboard: page,
  }) +
  (run.error
    ? `\n${errorText(run.error, paint)}${stackText(run.error)}`
    : run.status === 'succeeded'
      ? `\nresult\n${prettyJson(run.result)}`
      : '')

const stackText = ({ stack }: Failure): string =>
  stack === undefined
    ? ''
    : stack
        .split('\n')
        .filter((line) => /^\s+at /.test(line))
        .map((line) => `  ${onOneLine(line.trim())}\n`)
        .join('')

/** The part of a run that its line shows. */
interface ShownRun extends Times, Pick<Run, 'run_id' | 'run_type' | 'fn' | 'status' | 'retry_at' | 'error'> {
  /** Null if the run never started. */
  readonly attempt: number | null
}

/** One line about a run, for commands that follow something. */
export const runLine = (time: string, word: string, run: ShownRun, paint: Paint): string => {
  const colour = colours[run.status]
  const attempt = run.attempt !== null && run.attempt > 1 ? `attempt ${run.attempt}` : null
  const again = run.retry_at === null ? null : `again at ${run.retry_at}`
  const parts = [workOf(run), attempt, timeOf(run), again, run.run_id].filter((part) => part !== null)
  const line = `${time}  ${paint(colour, word.padEnd(9))}  ${onOneLine(parts.join('  '))}\n`
  return run.error ? line + errorText(run.error, paint).replace(/^(?=.)/gm, '    ') : line
}
