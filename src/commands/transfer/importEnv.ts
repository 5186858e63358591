import { filesOf } from '../../content/contentKey.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { TransferKey } from '../../secrets/transferKey.ts'
import type { CommandDeps } from '../deps.ts'
import { createEnv } from '../orgs/createEnv.ts'
import { createOrg } from '../orgs/createOrg.ts'
import { retentionOf } from '../../plans/plans.ts'
import { Appends } from './appends.ts'
import { checkStored, putBlob, putKey } from './importContent.ts'
import { appendExpired } from './expiredFacts.ts'
import { adapted, appendFacts, checkFree, checkUnexpired } from './storeFacts.ts'
import { checkPlace, type Header, headerOf } from './importHeader.ts'
import { type ImportedFact, ImportedFacts } from './importedFacts.ts'
import { recordsIn } from './records.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'blobs' | 'payloads' | 'wrappedKeys'>

/** Facts of one append: with a payload of 64 KiB each, they stay below the limit of EventStoreDB. */
const FACTS_PER_APPEND = 12

export interface Imported {
  readonly env_id: string
  readonly org: string
  readonly env: string
  readonly keys: number
  readonly blobs: number
  readonly facts: number
}

/**
 * Imports an environment from the records of `exportEnv`, with its ids and times.
 * T1: the environment is created last, so nobody uses it before it is complete.
 * T2: every step can be repeated: an append of the same facts changes nothing. A repetition continues after a crash, also with
 * a later export.
 * T3: a stream, a resource or an environment that exists with other facts is refused.
 * Rejects with `bad_request` for a file that is damaged or names what it does not contain, and with `conflict`.
 */
export const importEnv = async (
  deps: Deps,
  {
    content,
    transferKey,
  }: { readonly content: AsyncIterable<Uint8Array>; readonly transferKey: TransferKey },
  cause: Cause,
): Promise<Imported> => {
  const records = recordsIn(content)
  const first = await records.next()
  if (first.done) throw new AppError('bad_request', 'Expected a file of svc export, got an empty one')
  const header = headerOf(first.value.line)
  await deps.views.settled()
  const isThere = await checkPlace(deps, header)
  const facts = new ImportedFacts(header.env_id)
  const counts = { keys: 0, blobs: 0, facts: 0 }
  const files = new Set<string>()
  let end: unknown
  let batch: ImportedFact[] = []
  const appends = new Appends()
  const flush = async () => {
    const [full, first] = [batch, batch[0]]
    batch = []
    counts.facts += full.length
    if (first) await appends.add(first.stream, () => appendFacts(deps, full))
  }
  for await (const record of records) {
    const { line } = record
    if (end !== undefined) throw new AppError('bad_request', 'Expected nothing after the end of the export')
    if ('end' in line) {
      await flush()
      await appends.finish()
      end = line['end']
    } else if ('error' in line)
      throw new AppError('bad_request', `The export is incomplete: ${String(line['error']).slice(0, 200)}`)
    else if ('key' in line) {
      await putKey(deps, { line, header, transferKey })
      counts.keys++
    } else if ('blob' in line) {
      const key = await putBlob(deps, { record, header })
      if (key.startsWith(filesOf(header.env_id))) files.add(key)
      counts.blobs++
    } else {
      const fact = await adapted(deps, facts.check(line))
      for (const introduced of fact.introduces) await checkFree(deps, introduced, header.env_id)
      const { stream, expired: count, metadata } = fact
      if (count > 0) {
        await checkUnexpired(deps, stream)
        await flush()
        await appends.add(stream, () => appendExpired(deps.store, { stream, count, metadata }))
      }
      const last = batch.at(-1)
      if (
        batch.length === FACTS_PER_APPEND ||
        (last && (last.stream !== stream || fact.revision !== last.revision + 1))
      )
        await flush()
      batch.push(fact)
    }
  }
  if (JSON.stringify(end) !== JSON.stringify(counts))
    throw new AppError('bad_request', 'The file is incomplete: export the environment again')
  await checkStored(deps, { header, files })
  const { env_id } = header
  await createTenant(deps, { header, isThere }, cause) // T1
  await retain(deps, { env_id, streams: facts.expiring() })
  const record = { type: 'RecordImport', env_id, ...counts } as const
  await deps.aggregates.envs.handle(streamOf.env(env_id), record, { ...cause, env_id })
  return { env_id, org: header.org, env: header.env, ...counts }
}

/** Retentions that are set at a time. */
const RETAINED_AT_ONCE = 64

/** The saga that sets retentions has passed the streams: their environment did not exist. */
const retain = async (
  { store, views }: Pick<Deps, 'store' | 'views'>,
  { env_id, streams }: { readonly env_id: string; readonly streams: readonly string[] },
): Promise<void> => {
  await views.directory.reach(await store.head()) // the read models may need longer for a large file
  const seconds = retentionOf(views.directory.env(env_id)?.plan)
  if (seconds === null) return
  for (let n = 0; n < streams.length; n += RETAINED_AT_ONCE)
    await Promise.all(streams.slice(n, n + RETAINED_AT_ONCE).map((stream) => store.expire(stream, seconds)))
}

const createTenant = async (
  deps: Deps,
  { header, isThere }: { header: Header; isThere: boolean },
  cause: Cause,
): Promise<void> => {
  if (isThere) return
  const { org, org_name: name, plan, env } = header
  await createOrg(deps, { slug: org, name, plan }, cause).catch((error: unknown) => {
    if (!isAppError(error, 'conflict')) throw error // it exists
  })
  await createEnv(deps, { org, name: env }, cause).catch(async (error: unknown) => {
    const isSame = isAppError(error, 'conflict') && (await checkPlace(deps, header)) // another operator imports it too
    if (!isSame) throw error
  })
}
