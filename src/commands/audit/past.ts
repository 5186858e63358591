import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { type Cursor, loggedAt, type Recorded } from '../../events/event.ts'
import type { EventType } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { reads } from '../../loops/slices.ts'
import type { Doc } from '../../ports/readModels.ts'
import { type ApiKeyDoc, apiKeys } from '../../projections/tenants.ts'
import { type BuildDoc, builds } from '../../projections/builds.ts'
import { contextVariables } from '../../projections/contextVariables.ts'
import { type FileDoc, files } from '../../projections/files.ts'
import { type ProjectDoc, projects } from '../../projections/projects.ts'
import type { Projection } from '../../projections/projection.ts'
import type { CommandDeps } from '../deps.ts'
import { isBeyond, isBy, type Moment, momentOf } from './moment.ts'

export type PastDeps = Pick<CommandDeps, 'store'> & {
  readonly views: Pick<CommandDeps['views'], 'audit' | 'auditLinks' | 'files' | 'settled'>
}

/** Facts and streams that one request folds. Their number bounds its time. */
const MAX_FACTS = 20_000
const MAX_STREAMS = 1000
/** JSON of the folded facts, in characters: their documents are in memory together. */
const MAX_LENGTH = 8 << 20
/** The memory of a request for a past state: parsed JSON needs up to three times as much. */
export const PAST_BYTES = MAX_LENGTH * 3

interface Page {
  readonly limit: number
  readonly offset: number
}

/** Some of the documents, and the number of all. */
export interface PastPage<D> {
  readonly docs: readonly D[]
  readonly total: number
}

/**
 * Documents as they were at a moment: the folds of the read models over the streams of the log, up to that moment. The
 * audit finds the streams, also those of deleted resources. Everything else follows the same rules as the present state.
 */
export class Past {
  readonly moment: Moment
  readonly #deps: PastDeps
  #facts = 0
  #length = 0

  constructor(deps: PastDeps, moment: Moment) {
    this.#deps = deps
    this.moment = moment
  }

  /** Folds the facts of some streams that were stored by the moment. Rejects with `bad_request` for too many. */
  async fold<D extends Doc>(
    { handles, idsOf, evolve }: Pick<Projection<D>, 'handles' | 'idsOf' | 'evolve'>,
    streams: Iterable<string>,
  ): Promise<ReadonlyMap<string, D>> {
    const docs = new Map<string, D>()
    for (const stream of streams) {
      const turn = reads.take()
      if (turn) await turn
      for await (const fact of this.#deps.store.read(stream)) {
        if (!isBy(this.moment, fact)) break
        if (++this.#facts > MAX_FACTS) throw tooMany(`${MAX_FACTS} facts`)
        const wait = reads.take()
        if (wait) await wait
        if (!handles.includes(fact.event.type)) continue
        const ids = idsOf(fact)
        if (ids.length === 0) continue
        this.#length += JSON.stringify(fact.event).length
        if (this.#length > MAX_LENGTH) throw tooMany(`${MAX_LENGTH >> 20} MiB of facts`)
        for (const id of ids) {
          const doc = evolve(docs.get(id) ?? null, fact, id)
          if (doc) docs.set(id, doc)
          else docs.delete(id)
        }
      }
    }
    return docs
  }

  /** The projects of an environment. */
  async projects(env_id: string): Promise<readonly ProjectDoc[]> {
    return [...(await this.fold(projects, await this.#projectStreams(env_id))).values()]
  }

  /** One page of the projects of an environment, the newest first. Only their streams are read, so their number does not matter. */
  async projectPage(env_id: string, page: Page): Promise<PastPage<ProjectDoc>> {
    return this.#page(projects, await this.#streamsBetween(env_id, 'ProjectCreated', 'ProjectDeleted'), page)
  }

  /** The project that had this id or name. Rejects with `not_found`. */
  async project(env_id: string, idOrName: string): Promise<ProjectDoc> {
    const byId = await this.resource(projects, env_id, idOrName)
    const found = byId ?? (await this.projects(env_id)).find(({ name }) => name === idOrName)
    if (!found) throw new AppError('not_found', `There was no project "${idOrName}" then`)
    return found
  }

  /** The builds of a project, or of all projects of an environment. */
  async builds(
    of: { readonly project_id: string } | { readonly env_id: string },
  ): Promise<readonly BuildDoc[]> {
    const streams =
      'project_id' in of ? [streamOf.project(of.project_id)] : await this.#projectStreams(of.env_id)
    return [...(await this.fold(builds, streams)).values()]
  }

  async variables(project_id: string) {
    return [...(await this.fold(contextVariables, [streamOf.context(project_id)])).values()]
  }

  /** The sessions or service keys that an API key had issued. */
  async issued<D extends Doc>(projection: Projection<D>, api_key_id: string): Promise<readonly D[]> {
    return [...(await this.fold(projection, [streamOf.issued(api_key_id)])).values()]
  }

  /** One page of the API keys of an environment, the newest first. */
  async apiKeyPage(env_id: string, page: Page): Promise<PastPage<ApiKeyDoc>> {
    return this.#page(apiKeys, await this.#streamsBetween(env_id, 'ApiKeyCreated', 'ApiKeyDeleted'), page)
  }

  /** The document with this id, if a fact of the environment contains it (I7). */
  async resource<D extends Doc & { readonly env_id: string }>(
    projection: Projection<D>,
    env_id: string,
    id: string,
  ): Promise<D | undefined> {
    const { views } = this.#deps
    await views.settled('auditLinks')
    const query = {
      equal: { env_id, resource: id },
      sort: 'position',
      limit: 1,
      offset: 0,
      totals: false,
    } as const
    const [first] = (await views.auditLinks.find(query)).items
    return first && this.#resourceIn(first.stream, projection, { env_id, id })
  }

  /** The file with this id. The audit forgets what a function wrote, with its run; the file itself names its stream. */
  async file(env_id: string, id: string): Promise<FileDoc | undefined> {
    const linked = await this.resource(files, env_id, id)
    if (linked) return linked
    const { views } = this.#deps
    await views.settled('files')
    const present = await views.files.get(id)
    if (!present) return undefined
    return this.#resourceIn(streamOf.file(present.env_id, present.path), files, { env_id, id })
  }

  async #resourceIn<D extends Doc & { readonly env_id: string }>(
    stream: string,
    projection: Projection<D>,
    { env_id, id }: { readonly env_id: string; readonly id: string },
  ): Promise<D | undefined> {
    const doc = (await this.fold(projection, [stream])).get(id)
    return doc?.env_id === env_id ? doc : undefined
  }

  /** The time of the moment; for a position, that of the next fact, because only that one is known to be later. */
  async time(): Promise<string> {
    if ('time' in this.moment) return this.moment.time
    const next = await this.next()
    return next ? loggedAt(next) : clock.iso()
  }

  /** The first fact after a position, without those of the installation; undefined if there is none. */
  async next(): Promise<Recorded | undefined> {
    if ('time' in this.moment) return undefined
    return firstAfter(this.#deps, this.moment.position)
  }

  async #page<D extends Doc>(
    projection: Projection<D>,
    streams: readonly string[],
    { limit, offset }: Page,
  ): Promise<PastPage<D>> {
    const shown = streams.toReversed().slice(offset, offset + limit)
    return { docs: [...(await this.fold(projection, shown)).values()], total: streams.length }
  }

  async #projectStreams(env_id: string): Promise<readonly string[]> {
    const streams = await this.#streamsBetween(env_id, 'ProjectCreated', 'ProjectDeleted')
    if (streams.length > MAX_STREAMS) throw tooMany(`${MAX_STREAMS} streams`)
    return streams
  }

  /** The streams of an environment whose resource was created by the moment, and not deleted by then; the oldest first. */
  async #streamsBetween(env_id: string, created: EventType, deleted: EventType): Promise<readonly string[]> {
    const ended = new Set(await this.#streamsWith(env_id, deleted))
    return (await this.#streamsWith(env_id, created)).filter((stream) => !ended.has(stream))
  }

  /** The streams with a fact of a type in an environment that was stored by the moment. */
  async #streamsWith(env_id: string, type: EventType): Promise<readonly string[]> {
    const { views } = this.#deps
    await views.settled('audit')
    const streams = new Set<string>()
    let read = 0
    for await (const { stream, position, at, first_at } of everyDoc(views.audit, {
      id: 'position',
      equal: { env_id, type },
      sort: 'position',
    })) {
      const fact = { cursor: position, at: first_at ?? at }
      if (isBeyond(this.moment, fact)) break
      if (++read > MAX_FACTS) throw tooMany(`${MAX_FACTS} facts`)
      if (isBy(this.moment, fact)) streams.add(stream)
    }
    return [...streams]
  }
}

/** A restore stores the facts of the installation after all others, with their times, which are the oldest. */
const firstAfter = async (
  { store }: Pick<PastDeps, 'store'>,
  after: Cursor,
): Promise<Recorded | undefined> => {
  const found = new AbortController()
  try {
    for await (const { events, caughtUp } of store.subscribe({ after, signal: found.signal })) {
      const next = events.find(({ stream }) => stream !== streamOf.installation)
      if (next || caughtUp) return next
    }
    return undefined
  } finally {
    found.abort()
  }
}

const tooMany = (what: string): AppError =>
  new AppError(
    'bad_request',
    `as_of: this past state takes more than ${what} to fold; use a smaller limit, or ask for a single resource or project`,
  )

/** Opens the past state that a client names by a time or a position. Rejects with `bad_request`. */
export const pastOf = async (deps: PastDeps, as_of: string): Promise<Past> =>
  new Past(deps, await momentOf('as_of', as_of, { store: deps.store, now: clock.now() }))
