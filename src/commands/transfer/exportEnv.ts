import { counted } from '../../text/counted.ts'
import { AppError, isAppError, messageOf } from '../../errors.ts'
import type { Cursor, Recorded } from '../../events/event.ts'
import { Unhandled } from '../../events/unhandled.ts'
import type { TransferKey } from '../../secrets/transferKey.ts'
import type { CommandDeps } from '../deps.ts'
import { findEnv, findOrg } from '../orgs/findTenant.ts'
import { movedFact } from './earlierContent.ts'
import { ExportedBlobs } from './exportedBlobs.ts'
import { expires } from './expiredFacts.ts'
import { demandContent } from './missingContent.ts'
import { RecordWriter } from './records.ts'
import { streamOfFact } from './streamOfFact.ts'

type Deps = Pick<CommandDeps, 'store' | 'views' | 'blobs' | 'wrappedKeys'>

/**
 * Since version 2, a stream of events and runs may begin with a later fact than its first. Since version 3, each line has the sum of
 * all before.
 */
export const EXPORT = { format: 'svc export', version: 3 } as const

/**
 * Exports an environment as records: a header, its data keys under the transfer key, its blobs, its facts in the order of the
 * log, and an end. Rejects with `not_found`, and with `conflict` while runs are in progress. A failure after the header is
 * a record `error`, because the reply has begun. The environment must be at rest: a fact that is added meanwhile is a failure.
 */
export const exportEnv = async (
  deps: Deps,
  { env_id, transferKey }: { readonly env_id: string; readonly transferKey: TransferKey },
): Promise<AsyncGenerator<Buffer>> => {
  const { store, views } = deps
  const env = await findEnv(deps, env_id)
  if (env.importing)
    throw new AppError(
      'conflict',
      'An import into the environment is not complete: repeat it with svc import',
    )
  const org = await findOrg(deps, env.org_id)
  await views.settled()
  for (const status of ['running', 'pending_retry']) {
    const { total } = await views.runs.find({ equal: { env_id, status }, sort: 'order', limit: 1, offset: 0 })
    if (total > 0)
      throw new AppError(
        'conflict',
        `The environment has ${counted(total, 'run')} with the status ${status}; repeat the export when none is left, or cancel what runs`,
      )
  }
  const head = await store.head()
  const header = {
    ...EXPORT,
    env_id,
    env: env.name,
    org_id: org.org_id,
    org: org.slug,
    org_name: org.name,
    plan: org.plan,
    first: await firstFact(deps, env_id),
  }
  return recordsOf(deps, { env_id, transferKey, header, head })
}

/** By it, an import recognizes that it has begun before. One that does not expire is preferred. */
const firstFact = async ({ store }: Deps, env_id: string): Promise<{ stream: string; id: string } | null> => {
  let expiring: Recorded | undefined
  for await (const { events, caughtUp } of store.subscribe({
    env_id,
    signal: new AbortController().signal,
  })) {
    const transferred = events.filter(({ event, stream }) => streamOfFact(event, env_id) === stream)
    const first = transferred.find(({ stream, revision }) => revision === 0 && !expires(stream))
    if (first) return { stream: first.stream, id: first.id }
    expiring ??= transferred[0]
    if (caughtUp) break
  }
  return expiring ? { stream: expiring.stream, id: expiring.id } : null
}

interface Exporting {
  readonly env_id: string
  readonly transferKey: TransferKey
  readonly header: object
  /** The end of the log at the beginning. */
  readonly head: Cursor
}

interface Writing {
  readonly writer: RecordWriter
}

async function* recordsOf(
  deps: Deps,
  { env_id, transferKey, header, head }: Exporting,
): AsyncGenerator<Buffer> {
  const writer = new RecordWriter()
  yield writer.line(header)
  try {
    const keys = yield* keysOf(deps, { env_id, transferKey, writer })
    const blobs = new ExportedBlobs(deps, { env_id, writer })
    yield* blobs.all()
    await demandContent(deps, { env_id, exported: blobs.content })
    const facts = yield* factsOf(deps, { env_id, head, writer, blobs })
    yield writer.line({ end: { keys, blobs: blobs.count, facts } })
  } catch (error) {
    yield writer.line({ error: isAppError(error) ? error.message : `the export failed: ${messageOf(error)}` })
  }
}

async function* keysOf(
  { wrappedKeys }: Deps,
  { env_id, transferKey, writer }: Pick<Exporting, 'env_id' | 'transferKey'> & Writing,
): AsyncGenerator<Buffer, number> {
  let count = 0
  for await (const key of wrappedKeys.list({ env_id })) {
    if (key.kind !== 'data') continue
    const { id, scope } = key
    try {
      const wrapped = transferKey.wrap(scope, id, await wrappedKeys.get(key))
      yield writer.line({ key: id, project_id: scope.project_id ?? null, wrapped })
      count++
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error // erased meanwhile
    }
  }
  return count
}

async function* factsOf(
  { store }: Deps,
  { env_id, head, writer, blobs }: Pick<Exporting, 'env_id' | 'head'> & Writing & { blobs: ExportedBlobs },
): AsyncGenerator<Buffer, number> {
  const whole = new Set<string>()
  const unhandled = new Unhandled()
  let count = 0
  for await (const { events, caughtUp } of store.subscribe({
    env_id,
    signal: new AbortController().signal,
  })) {
    for (const fact of events) {
      const { id, stream, revision, cursor, at, metadata } = fact
      if (streamOfFact(fact.event, env_id) !== stream) continue
      if (cursor > head)
        throw new AppError(
          'conflict',
          'The environment was changed during the export; repeat it when the environment is at rest',
        )
      if (revision === 0) whole.add(stream)
      else if (!whole.has(stream) && !expires(stream)) continue // the operator of the event store removed its beginning
      unhandled.note(fact)
      const { event, payloads } = movedFact(fact, env_id)
      yield* blobs.payloads(payloads)
      blobs.demandPayloads(event)
      yield writer.line({ id, stream, revision, at, event, metadata })
      count++
    }
    if (caughtUp) break
  }
  if (unhandled.size > 0)
    throw new AppError(
      'conflict',
      `The environment has ${unhandled.size} events and requested runs that no worker has taken; repeat the export when ` +
        'svc status shows that none waits',
    )
  return count
}
