import Type from 'typebox'
import { clock, isoOf } from '../../clock.ts'
import { pastOf } from '../../commands/audit/past.ts'
import { orderBeyond, runsThen } from '../../commands/audit/pastRuns.ts'
import { MOST_SEARCHED, SEARCHED_TOGETHER, searchRuns } from '../../commands/runs/searchRuns.ts'
import { isCounted } from '../../commands/runs/runFilter.ts'
import { AppError } from '../../errors.ts'
import { isId } from '../../ids.ts'
import { holding } from '../../loops/byteBudget.ts'
import { AsOf } from '../asOf.ts'
import { beforeOf } from '../before.ts'
import type { ApiDeps } from '../deps.ts'
import { demandRef } from '../functionRef.ts'
import { DOCUMENT_BYTES } from '../http/memory.ts'
import { pageQuery } from '../paging.ts'
import { PageValues } from '../present/pageValues.ts'
import { presentListedRun } from '../present/run.ts'
import { list, route } from '../route.ts'
import type { RunDoc } from '../../projections/runs.ts'
import { Run, RunStatus, RunType } from '../schemas.ts'

const filter = (description: string, documented: { readonly format?: string } = {}) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description, documented }))

const uuid = { format: 'uuid' }

const query = pageQuery({
  status: Type.Optional(RunStatus),
  type: Type.Optional(RunType),
  project: filter('Only runs of this project, by id or present name'),
  fn: filter('Only runs of this function, as `ns/var`'),
  stream: filter('Only runs of this stream', uuid),
  event: filter('Only runs that this event started, with their retries', uuid),
  chain: filter('Only the attempts of this run: the id of any of them', uuid),
  error_code: filter('Only runs with this `error.code`, such as `timeout`'),
  final: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      description:
        '`true`: only runs that have ended and are not retried. `false`: only those that are running, wait for a retry, or were retried',
    }),
  ),
  text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only runs whose function reference or error message contains this text, in any case',
    }),
  ),
  time_range: Type.Optional(
    Type.String({
      description: 'Only runs of this period before now, as an ISO 8601 duration such as P7D',
      documented: { format: 'duration' },
    }),
  ),
  before: filter('Only runs that started before this ISO 8601 time, or before a `next` or `searched_to`'),
  ...AsOf,
})
type Asked = Type.Static<typeof query>

/** The runs whose past state one request computes. */
const MOST_FOLDED = 500

export const runListRoute = route({
  method: 'GET',
  path: '/v1/runs',
  operationId: 'listRuns',
  summary: 'List runs',
  description:
    'All given filters hold. A list by `status`, `type` and `time_range` is complete. With another filter, a request looks ' +
    `at no more than ${MOST_SEARCHED} runs, the newest first: then \`total\` counts those it found, and ` +
    '`pagination.searched_to` is the value of `before` with which the search continues. With `as_of`, all filters apply to the ' +
    `past state, and a request with \`status\`, \`error_code\`, \`final\` or \`text\` looks at no more than ${MOST_FOLDED} runs.`,
  tag: 'Runs',
  needs: { type: 'run', action: 'read' },
  query,
  reply: { kind: 'list', schema: Run },
  handle: async ({ query: asked, credential: { env_id }, deps }) => {
    const { views, memory } = deps
    const { limit, offset, as_of, time_range } = asked
    if (asked.project !== undefined) await views.settled('projects')
    const filters = filtersOf(deps, env_id, asked)
    const past = as_of === undefined ? undefined : await pastOf(deps, as_of)
    const bounds = [beforeOf(asked.before), past && (await orderBeyond(past))]
    const before = bounds.filter((bound) => bound !== undefined).toSorted()[0]
    const range = {
      limit,
      offset,
      ...(time_range !== undefined && { from: startOfRange(time_range) }),
      ...(before !== undefined && { before }),
    }
    await views.settled('runs')
    const reply = async () => {
      const pastRuns = past && {
        most: MOST_FOLDED,
        asTheyWere: (docs: readonly RunDoc[]) => runsThen(past, docs),
      }
      const { items, total, searched_to } = await searchRuns(views, filters, range, pastRuns)
      const values = new PageValues()
      const presented = items.map((doc) => presentListedRun(doc, values))
      const last = offset + items.length < total ? items.at(-1) : undefined
      return {
        ...list(presented, total, range),
        ...(searched_to !== undefined && { searched_to }),
        ...(last && { next: last.order }),
      }
    }
    if (past) return reply() // the memory of a past state is enough for its page
    const read = limit + (isCounted(filters) ? 0 : SEARCHED_TOGETHER)
    return holding(memory.values, { owner: memory.ownerOf(env_id), bytes: read * DOCUMENT_BYTES }, reply)
  },
})

const filtersOf = (
  deps: Pick<ApiDeps, 'views'>,
  env_id: string,
  { status, type, project, fn, stream, event, chain, error_code, final, text }: Asked,
) => {
  if (fn !== undefined) demandRef('fn', fn)
  for (const [name, id] of Object.entries({ stream, event, chain }))
    if (id !== undefined && !isId(id))
      throw new AppError('bad_request', `${name}: expected a UUID, got "${id.slice(0, 60)}"`)
  return {
    env_id,
    ...(status && { status }),
    ...(type && { run_type: type }),
    ...(project !== undefined && { project_id: projectIdOf(deps, env_id, project) }),
    ...(fn !== undefined && { fn }),
    ...(stream !== undefined && { stream_id: stream }),
    ...(event !== undefined && { event_id: event }),
    ...(chain !== undefined && { chain }),
    ...(error_code !== undefined && { error_code }),
    ...(final !== undefined && { final: final === 'true' }),
    ...(text !== undefined && { text }),
  }
}

/** Runs outlive their project, whose id then still finds them. */
const projectIdOf = ({ views }: Pick<ApiDeps, 'views'>, env_id: string, idOrName: string): string => {
  const found = views.directory.project(env_id, idOrName)
  if (found) return found.project_id
  if (isId(idOrName)) return idOrName
  throw new AppError(
    'bad_request',
    `project: expected the id or name of a project, got "${idOrName.slice(0, 60)}"`,
  )
}

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
