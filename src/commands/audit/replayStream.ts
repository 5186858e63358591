import { clock } from '../../clock.ts'
import { Replay, type Replayed } from '../../domain/replay.ts'
import { AppError } from '../../errors.ts'
import type { Recorded } from '../../events/event.ts'
import { resourcesOf } from '../../events/redact.ts'
import { reads } from '../../loops/slices.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { isBy, type Moment, momentOf } from './moment.ts'

type Deps = Pick<CommandDeps, 'store'> & {
  readonly views: Pick<CommandDeps['views'], 'auditLinks' | 'files' | 'runs' | 'events' | 'settled'>
}

export interface ReplayQuery {
  readonly stream?: string | undefined
  readonly resource?: string | undefined
  /** The last position or time of the replay; absent: the end of the stream. */
  readonly until?: string | undefined
  readonly limit: number
  readonly offset: number
}

export interface ReplayedFact extends Replayed {
  readonly fact: Pick<Recorded, 'cursor' | 'at' | 'event'>
}

/** Facts that one request folds; their number bounds its time. */
const MAX_FACTS = 100_000

/**
 * Folds a stream again, and resolves with one page of its facts, each with what it changed and the state after it; with
 * `resource`, only the facts about it. Rejects with `bad_request`, and with `not_found` for what the log does not contain.
 */
export const replayStream = async (
  deps: Deps,
  { stream, resource, until, limit, offset }: ReplayQuery,
): Promise<{ readonly items: readonly ReplayedFact[]; readonly total: number }> => {
  if ((stream === undefined) === (resource === undefined))
    throw new AppError(
      'bad_request',
      stream === undefined
        ? 'stream: expected a stream or a resource, got neither'
        : 'resource: expected either a stream or a resource, got both',
    )
  const present = { store: deps.store, now: clock.now() }
  const moment = until === undefined ? null : await momentOf('until', until, present)
  const named = stream ?? (await streamWith(deps, resource ?? ''))
  const replay = Replay.of(named)
  if (!replay)
    throw new AppError('bad_request', `stream: no stream has such a name, got "${named.slice(0, 60)}"`)
  const isShown = shownBy(named, resource)
  const items: ReplayedFact[] = []
  let [read, total] = [0, 0]
  for await (const fact of factsUntil(deps, named, moment)) {
    const wait = reads.take()
    if (wait) await wait
    if (++read > MAX_FACTS)
      throw new AppError(
        'bad_request',
        `until: expected an earlier position or time, because ${named} has more than ${MAX_FACTS} facts`,
      )
    const isInPage = isShown(fact) && ++total > offset && items.length < limit
    if (isInPage) items.push({ fact, ...replay.step(fact) })
    else replay.skip(fact)
  }
  if (read === 0)
    throw new AppError(
      'not_found',
      moment ? `${named} has no facts until ${until}` : `No stream ${named.slice(0, 200)}`,
    )
  return { items, total }
}

/** A stream of the resource is shown completely; other streams only with the facts that name the resource. */
const shownBy = (stream: string, resource: string | undefined): ((fact: Recorded) => boolean) =>
  resource === undefined || stream.endsWith(`-${resource}`)
    ? () => true
    : ({ event }) => resourcesOf(event).includes(resource)

async function* factsUntil({ store }: Deps, stream: string, moment: Moment | null): AsyncGenerator<Recorded> {
  for await (const fact of store.read(stream)) {
    if (moment && !isBy(moment, fact)) return
    yield fact
  }
}

/** The stream with the first fact about a resource. Rejects with `not_found`. */
const streamWith = async ({ store, views }: Deps, resource: string): Promise<string> => {
  const env = streamOf.env(resource) // an import creates the environment after facts that name it
  for await (const _ of store.read(env, { limit: 1 })) return env
  await views.settled('auditLinks', 'files', 'runs', 'events')
  const query = { equal: { resource }, sort: 'position', limit: 1, offset: 0, totals: false } as const
  const [first] = (await views.auditLinks.find(query)).items
  if (first) return first.stream
  const file = await views.files.get(resource) // the audit has forgotten the function that wrote it
  if (file) return streamOf.file(file.env_id, file.path)
  const inStream = (await views.runs.get(resource)) ?? (await views.events.get(resource))
  const stream = streamOf.stream(inStream?.stream_id ?? resource)
  for await (const _ of store.read(stream, { limit: 1 })) return stream
  throw new AppError(
    'not_found',
    `resource: nothing in the log has the id, path, key or domain "${resource.slice(0, 200)}"; svc audit or GET /operator/audit lists the changes with their ids`,
  )
}
