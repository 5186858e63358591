import { clock } from '../../clock.ts'
import { payloadsOf } from '../../content/payloads.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { OrgDoc } from '../../projections/tenants.ts'
import type { TransferKey } from '../../secrets/transferKey.ts'
import type { CommandDeps } from '../deps.ts'
import { findOrg } from '../orgs/findTenant.ts'
import { Appends } from './appends.ts'
import { appendExpired } from './expiredFacts.ts'
import { checkStored, putBlob, putKey } from './importContent.ts'
import { ImportedBuilds } from './importedBuilds.ts'
import { type ImportedFact, ImportedFacts } from './importedFacts.ts'
import type { Header, Place } from './importHeader.ts'
import type { ImportPause } from './importPause.ts'
import type { TransferRecord } from './records.ts'
import { appendFacts, checkFree, checkUnexpired } from './storeFacts.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'blobs' | 'payloads' | 'wrappedKeys'>

/** Facts of one append: with a payload of 64 KiB each, they stay below the limit of EventStoreDB. */
const FACTS_PER_APPEND = 12

/** The numbers of records in a file. */
export interface Counts {
  readonly keys: number
  readonly blobs: number
  readonly facts: number
}

/** The fact as it is stored now: after `ImportBegun`, also by its time in the audit. */
const importedNow = <Fact extends Pick<ImportedFact, 'metadata'>>(fact: Fact): Fact => ({
  ...fact,
  metadata: { ...fact.metadata, imported_at: clock.iso() },
})

interface Stored {
  readonly counts: Counts
  /** The streams whose facts expire by the plan. */
  readonly expiring: readonly string[]
}

/** The organization in which the environment will be: its slug may have had another id before. */
const orgOf = async (deps: Deps, { org, org_id, plan }: Header): Promise<Pick<OrgDoc, 'org_id' | 'plan'>> => {
  try {
    return await findOrg(deps, org)
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    return { org_id, plan }
  }
}

interface Storing {
  /** Those after the header. */
  readonly records: AsyncIterable<TransferRecord>
  readonly header: Header
  readonly place: Place
  readonly transferKey: TransferKey
  readonly pause: ImportPause
}

/** Stores the keys, blobs and facts of a file. Nothing is appended any more when it rejects. */
export const storeRecords = async (deps: Deps, storing: Storing): Promise<Stored> => {
  const appends = new Appends()
  try {
    return await storeWith(appends, deps, storing)
  } catch (error) {
    await appends.finish().catch(() => {})
    throw error
  }
}

const storeWith = async (
  appends: Appends,
  deps: Deps,
  { records, header, place, transferKey, pause }: Storing,
): Promise<Stored> => {
  const facts = new ImportedFacts(header.env_id)
  const counts = { keys: 0, blobs: 0, facts: 0 }
  const content = new Set<string>()
  const builds = new ImportedBuilds(deps, header, { content, org: await orgOf(deps, header) })
  /** The backend of content is that of this installation. */
  const adapted = (fact: ImportedFact): Promise<ImportedFact> | ImportedFact =>
    fact.event.type === 'FileStored'
      ? { ...fact, event: { ...fact.event, storage_backend: deps.blobs.backend } }
      : builds.adapted(fact)
  let end: unknown
  let batch: ImportedFact[] = []
  const flush = async () => {
    const [full, first] = [batch, batch[0]]
    batch = []
    counts.facts += full.length
    if (!first) return
    const { stream, revision } = first
    await appends.add(stream, async () => {
      await pause.before({ stream, revision, count: full.length, ids: full.map(({ id }) => id) })
      await appendFacts(deps, full.map(importedNow))
    })
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
      const blob = await putBlob(deps, { record, header })
      const { key } = blob
      facts.sizes.note(blob)
      // Payloads of an environment are no orphans while it exists: they expire by their day.
      if (place === 'absent' || !key.startsWith(payloadsOf(header.env_id))) content.add(key)
      counts.blobs++
    } else {
      const fact = await adapted(facts.check(line))
      for (const introduced of fact.introduces) await checkFree(deps, introduced, header.env_id)
      const { stream, expired: count, metadata } = fact
      if (count > 0) {
        await checkUnexpired(deps, stream)
        await flush()
        await appends.add(stream, async () => {
          await pause.before({ stream, revision: count - 1, count: 1 })
          await appendExpired(deps.store, { stream, count, metadata: importedNow({ metadata }).metadata })
        })
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
  await checkStored(deps, content)
  return { counts, expiring: facts.expiring() }
}
