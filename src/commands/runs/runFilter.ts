import type { RunDoc, RunStatus } from '../../projections/runs.ts'
import type { Query } from '../../ports/readModels.ts'

/** The runs of an environment that a search finds: all given conditions hold. */
export interface RunFilter {
  readonly env_id: string
  readonly status?: RunStatus
  readonly run_type?: RunDoc['run_type']
  readonly project_id?: string
  /** `ns/var`. */
  readonly fn?: string
  readonly stream_id?: string
  readonly event_id?: string
  readonly error_code?: string
  /** True: the run has ended and is not retried. False: it is running, waits for its retry, or was retried. */
  readonly final?: boolean
  /** Part of the function reference or of the error message, in any case. */
  readonly text?: string
}

type Path = Pick<Query, 'equal' | 'sort' | 'from'>
type Field = Exclude<keyof RunFilter, 'final' | 'text'>

/** The queries of declared indexes, the one that usually finds the fewest runs first. */
const PATHS: readonly {
  readonly equal: readonly Field[]
  readonly sort?: 'error_order'
  readonly rare?: true
}[] = [
  { equal: ['event_id'] },
  { equal: ['stream_id'] },
  { equal: ['env_id', 'error_code'], sort: 'error_order' },
  { equal: ['env_id', 'status', 'run_type'], rare: true },
  { equal: ['env_id', 'status'], rare: true },
  { equal: ['env_id', 'fn'] },
  { equal: ['project_id'] },
  { equal: ['env_id', 'status', 'run_type'] },
  { equal: ['env_id', 'status'] },
  { equal: ['env_id', 'run_type'] },
  { equal: ['env_id'] },
]

const COUNTED: readonly string[] = ['env_id', 'status', 'run_type']

/** Whether the totals of a filter are stored for all of its values. */
export const isCounted = (filter: object): boolean =>
  Object.keys(filter).every((field) => COUNTED.includes(field))

/** Most runs succeed, so any other status finds fewer runs than a function or a project. */
const COMMON: RunStatus = 'succeeded'

/** How a search reads runs: along an index, and the condition for what the index does not decide. */
export interface SearchPlan {
  readonly path: Path
  /** Null: the index alone decides, except for the environment of its first run. */
  readonly matches: ((doc: RunDoc) => boolean) | null
  /** Whether the runs of the index may belong to another environment: then all of them do. */
  readonly mayBeForeign: boolean
}

/** Plans a search. Each search has an index, because each run has an environment. */
export const planSearch = (filter: RunFilter): SearchPlan => {
  const chosen = PATHS.find(
    ({ equal, rare }) =>
      equal.every((field) => filter[field] !== undefined) && !(rare && filter.status === COMMON),
  )
  const { equal: fields, sort = 'order' } = chosen ?? { equal: ['env_id'] as const }
  const equal = Object.fromEntries(fields.map((field) => [field, filter[field] ?? null]))
  const rest = Object.keys(filter).filter(
    (field) => field !== 'env_id' && !(field in equal) && filter[field as keyof RunFilter] !== undefined,
  )
  return {
    path: { equal, sort, ...(sort !== 'order' && { from: '' }) }, // a sparse index needs a bound
    matches: rest.length === 0 ? null : matcherOf(filter),
    mayBeForeign: !('env_id' in equal),
  }
}

/** Returns the whole condition of a filter. */
export const matcherOf = ({ final, text, ...fields }: RunFilter): ((doc: RunDoc) => boolean) => {
  const wanted = Object.entries(fields).filter(([, value]) => value !== undefined)
  const part = text?.toLowerCase()
  return (doc) =>
    wanted.every(([field, value]) => doc[field as Field] === value) &&
    (final === undefined || isFinal(doc) === final) &&
    (part === undefined || [doc.fn, doc.error?.message].some((each) => each?.toLowerCase().includes(part)))
}

const isFinal = ({ status, retried_by }: RunDoc): boolean =>
  status !== 'running' && status !== 'pending_retry' && retried_by === null
