import { createHash } from 'node:crypto'
import { AppError, isAppError, messageOf } from '../../errors.ts'
import { checkedFact } from '../../events/checkFact.ts'
import type { Cause, NewEvent } from '../../events/event.ts'
import { Plan } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import { isId } from '../../ids.ts'
import { filesOf } from '../../content/contentKey.ts'
import { payloadsOf } from '../../content/payloads.ts'
import type { TransferKey } from '../../secrets/transferKey.ts'
import type { CommandDeps } from '../deps.ts'
import { createEnv, envIdAt } from '../orgs/createEnv.ts'
import { createOrg, orgIdOf } from '../orgs/createOrg.ts'
import { checkLabel } from '../orgs/label.ts'
import { buildKey } from '../../ports/runtime.ts'
import { checkImportedFunctions } from './checkImportedFunctions.ts'
import { EXPORT } from './exportEnv.ts'
import { type ImportedFact, ImportedFacts, type Introduced } from './importedFacts.ts'
import { recordsIn, type TransferRecord } from './records.ts'

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

interface Header {
  readonly env_id: string
  readonly env: string
  readonly org_id: string
  readonly org: string
  readonly org_name: string
  readonly plan: Plan
  readonly first: { readonly stream: string; readonly id: string } | null
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
  const flush = async () => {
    await append(deps, batch)
    counts.facts += batch.length
    batch = []
  }
  for await (const record of records) {
    const { line } = record
    if (end !== undefined) throw new AppError('bad_request', 'Expected nothing after the end of the export')
    if ('end' in line) {
      await flush()
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
      const last = batch.at(-1)
      if (
        batch.length === FACTS_PER_APPEND ||
        (last && (last.stream !== fact.stream || fact.revision !== last.revision + 1))
      )
        await flush()
      batch.push(fact)
    }
  }
  if (JSON.stringify(end) !== JSON.stringify(counts))
    throw new AppError('bad_request', 'The file is incomplete: export the environment again')
  await checkStored(deps, { header, files })
  await createTenant(deps, { header, isThere }, cause) // T1
  return { env_id: header.env_id, org: header.org, env: header.env, ...counts }
}

const headerOf = (line: TransferRecord['line']): Header => {
  if (line['format'] !== EXPORT.format)
    throw new AppError('bad_request', 'Expected a file of svc export, got another file')
  if (line['version'] !== EXPORT.version)
    throw new AppError(
      'bad_request',
      `The file has version ${String(line['version']).slice(0, 20)}, and this svc reads version ${EXPORT.version}; upgrade svc`,
    )
  const text = (name: string, value: unknown = line[name]): string => {
    if (typeof value === 'string' && value.length > 0 && value.length <= 300) return value
    throw new AppError('bad_request', `${name}: expected 1 to 300 characters`)
  }
  const [org, env, plan] = [text('org'), text('env'), text('plan')]
  checkLabel('org', org)
  checkLabel('env', env)
  if (!isPlan(plan)) throw new AppError('bad_request', `plan: expected a plan of this build, got ${plan}`)
  const first = line['first'] as Partial<Record<'stream' | 'id', unknown>> | null | undefined
  return {
    env_id: text('env_id'),
    env,
    org_id: text('org_id'),
    org,
    org_name: text('org_name'),
    plan,
    first: first ? { stream: text('first', first.stream), id: text('first', first.id) } : null,
  }
}

const isPlan = (value: string): value is Plan => Plan.anyOf.some((each) => each.const === value)

/** Whether the environment exists. T3: one with content is accepted only if it contains the first fact of the file. */
const checkPlace = async (deps: Deps, { env_id, env, org_id, org, first }: Header): Promise<boolean> => {
  const refuse = (what: string) =>
    new AppError(
      'conflict',
      `${what}: an environment keeps its id only in an organization of the same slug and history`,
    )
  if (org_id !== orgIdOf(org)) throw refuse(`org: the id of "${org}" is not that of a new organization`)
  if (env_id !== envIdAt(org, env)) throw refuse(`env: the id of "${env}" is not that of a new environment`)
  const status = await deps.aggregates.envs.read(streamOf.env(env_id), (state) => state.status)
  if (status === 'deleted')
    throw new AppError('conflict', `env: "${org}/${env}" was deleted here, and its id is not used again`)
  if (status !== 'active') return false
  if (first !== null)
    for await (const { id } of deps.store.read(first.stream, { limit: 1 })) if (id === first.id) return true
  await checkUnused(deps, env_id)
  return true
}

/** An environment that exists is accepted while it is empty, as after a first start. */
const checkUnused = async ({ views }: Pick<Deps, 'views'>, env_id: string): Promise<void> => {
  const query = { equal: { env_id }, limit: 1, offset: 0 }
  const found = await Promise.all([
    views.projects.find({ ...query, sort: 'order' }),
    views.events.find({ ...query, sort: 'order' }),
    views.files.find({ ...query, sort: 'path' }),
  ])
  if (found.some(({ total }) => total > 0))
    throw new AppError('conflict', 'The environment exists already and is not empty')
}

/** A key that exists is never replaced, and one that was erased here does not come back. */
const putKey = async (
  { wrappedKeys, aggregates }: Deps,
  {
    line,
    header: { env_id },
    transferKey,
  }: { line: TransferRecord['line']; header: Header; transferKey: TransferKey },
): Promise<void> => {
  const { key: id, project_id, wrapped } = line
  if (typeof id !== 'string' || !isId(id)) throw new AppError('bad_request', 'key: expected a UUID')
  if (project_id !== null && (typeof project_id !== 'string' || !isId(project_id)))
    throw new AppError('bad_request', 'project_id: expected a UUID or null')
  const scope = { env_id, ...(project_id !== null && { project_id }) }
  const bytes = transferKey.unwrap(scope, id, String(wrapped))
  const key = { kind: 'data', id, scope } as const
  const stream = streamOf.dataKeys(project_id ?? env_id)
  const isErased = await aggregates.dataKeys.read(stream, ({ destroyed }) => destroyed.includes(id))
  if (!isErased && (await wrappedKeys.wrappedBy(key)) === null) await wrappedKeys.put(key, bytes)
}

const BUILD = /^builds\/([0-9a-f-]{36})\/[0-9a-f-]{36}-([0-9a-f]{64})\.(zip|json)$/

/** A blob that exists is never replaced. Resolves with its key. A zip must have the hash in its key: unpacked builds are shared by their hash. */
const putBlob = async (
  { blobs, views }: Deps,
  { record: { line, bytes }, header: { env_id } }: { record: TransferRecord; header: Header },
): Promise<string> => {
  const key = String(line['blob'])
  const [, project_id, hash, kind] = BUILD.exec(key) ?? []
  const isOfEnv = key.startsWith(payloadsOf(env_id)) || key.startsWith(filesOf(env_id))
  const project = project_id === undefined ? null : await views.projects.get(project_id)
  if (!isOfEnv && (project_id === undefined || (project && project.env_id !== env_id)))
    throw new AppError('bad_request', `blob: expected a blob of the environment, got ${key.slice(0, 120)}`)
  if (await blobs.head(key)) return key // T2
  const digest = createHash('sha256')
  const measured = async function* () {
    for await (const chunk of bytes) {
      digest.update(chunk)
      yield chunk
    }
    if (kind === 'zip' && digest.digest('hex') !== hash)
      throw new AppError('bad_request', `blob: the content of ${key} does not have the hash in its key`)
  }
  await blobs.put(key, measured())
  return key
}

/** Until its fact is stored, the content of a file is an orphan like that of a crash, which the service removes. */
const checkStored = async (
  { blobs }: Pick<Deps, 'blobs'>,
  { header: { env_id }, files }: { readonly header: Header; readonly files: ReadonlySet<string> },
): Promise<void> => {
  const missing = new Set(files)
  if (files.size > 0) for await (const { key } of blobs.list(filesOf(env_id))) missing.delete(key)
  for (const key of missing)
    throw new AppError('conflict', `The blob ${key} was removed during the import; repeat the import`)
}

/** T3: an id of the file must not belong to another environment. */
const checkFree = async (deps: Deps, { kind, id }: Introduced, env_id: string): Promise<void> => {
  const { views } = deps
  const owner = await (async () => {
    switch (kind) {
      case 'build':
        return (await views.builds.get(id))?.env_id
      case 'run':
        return (await views.runs.get(id))?.env_id
      case 'event':
        return (await views.events.get(id))?.env_id
      case 'file':
        return (await views.files.get(id))?.env_id
      case 'variable': {
        const variable = await views.contextVariables.get(id)
        return variable ? (await views.projects.get(variable.project_id))?.env_id : undefined
      }
      case 'project':
        return ownerOf(deps, streamOf.project(id))
      case 'stream':
        return ownerOf(deps, streamOf.stream(id))
      default:
        return kind satisfies never
    }
  })()
  if (owner !== undefined && owner !== env_id)
    throw new AppError('conflict', `The ${kind} ${id} exists already`)
}

/** The environment of a stream, also of a deleted resource; undefined if the stream does not exist. */
const ownerOf = async ({ store }: Pick<Deps, 'store'>, stream: string): Promise<string | undefined> => {
  for await (const { metadata } of store.read(stream, { limit: 1 })) return metadata.env_id ?? ''
  return undefined
}

/** The hash of a build whose zip is not in the file, because it was deleted: it is that of no zip. */
const NO_ZIP = '0'.repeat(64)

/**
 * The backend of content is that of this installation. A build without its zip gets no hash, by which it could be
 * another tenant's. Functions in a blob are checked like those in facts.
 */
const adapted = async ({ blobs, payloads }: Deps, fact: ImportedFact): Promise<ImportedFact> => {
  const { event } = fact
  if (event.type === 'FileStored') return { ...fact, event: { ...event, storage_backend: blobs.backend } }
  if (event.type !== 'BuildUploaded' && event.type !== 'BuildDeployed') return fact
  const { functions_ref: ref } = event
  const hasZip = (await blobs.head(buildKey(event))) !== null
  if (hasZip && ref) {
    const stored = await blobs.head(ref.key)
    if (!stored || stored.size > MAX_FUNCTIONS_BYTES)
      throw new AppError(
        'bad_request',
        `functions_ref: expected at most ${MAX_FUNCTIONS_BYTES} bytes in the file`,
      )
    checkList(await payloads.load({ ref }))
  }
  const hash = hasZip ? event.hash : NO_ZIP
  return event.type === 'BuildDeployed'
    ? { ...fact, event: { ...event, hash } }
    : { ...fact, event: { ...event, hash, storage_backend: blobs.backend } }
}

/** Bytes of a list of functions that is parsed. */
const MAX_FUNCTIONS_BYTES = 16 << 20

const checkList = (list: unknown): void => {
  try {
    if (!Array.isArray(list)) throw new Error('functions: expected a list')
    const { project_id, build_id, hash } = { project_id: '', build_id: '', hash: '' }
    const functions = checkedFact({
      type: 'BuildDeployed',
      project_id,
      build_id,
      hash,
      functions: list as unknown[],
    })
    if (functions.type === 'BuildDeployed') checkImportedFunctions(functions.functions ?? [])
  } catch (error) {
    throw new AppError('bad_request', `functions_ref: ${messageOf(error)}`)
  }
}

const append = async ({ store }: Pick<Deps, 'store'>, batch: readonly ImportedFact[]): Promise<void> => {
  const [first] = batch
  if (!first) return
  const { stream, revision } = first
  const events: NewEvent[] = batch.map(({ id, event, metadata }) => ({ id, event, metadata }))
  try {
    await store.append(stream, events, revision === 0 ? 'none' : revision - 1)
  } catch (error) {
    if (!isAppError(error, 'wrong_revision')) throw error
    const stored = await Array.fromAsync(store.read(stream, { from: revision, limit: batch.length }))
    const isBegun = stored.length > 0 && stored.length < batch.length // by an earlier export of the environment
    if (isBegun && stored.every(({ id }, n) => id === batch[n]?.id))
      return append({ store }, batch.slice(stored.length))
    throw new AppError(
      'conflict',
      `The environment exists already: ${stream} has other facts than the file`,
      { cause: error },
    )
  }
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
  await createEnv(deps, { org, name: env }, cause)
}
