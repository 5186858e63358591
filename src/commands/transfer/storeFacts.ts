import { AppError, isAppError, messageOf } from '../../errors.ts'
import { checkedFact } from '../../events/checkFact.ts'
import type { PayloadRef } from '../../events/scalars.ts'
import type { NewEvent } from '../../events/event.ts'
import type { Payloads } from '../../content/payloads.ts'
import { streamOf } from '../../events/streams.ts'
import { buildKey } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'
import { checkImportedFunctions } from './checkImportedFunctions.ts'
import { removedMeanwhile } from './importContent.ts'
import type { ImportedFact, Introduced } from './importedFacts.ts'

/** T3: an id of the file must not belong to another environment. */
export const checkFree = async (
  deps: Pick<CommandDeps, 'store' | 'views'>,
  { kind, id }: Introduced,
  env_id: string,
): Promise<void> => {
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

/** T3: a stream of which nothing can be read could be that of another environment. */
export const checkUnexpired = async (
  { store }: Pick<CommandDeps, 'store'>,
  stream: string,
): Promise<void> => {
  if (await store.isExpired(stream))
    throw new AppError('conflict', `${stream} exists already, and all of its facts have expired`)
}

/** The environment of a stream, also of a deleted resource; undefined if the stream does not exist. */
const ownerOf = async (
  { store }: Pick<CommandDeps, 'store'>,
  stream: string,
): Promise<string | undefined> => {
  for await (const { metadata } of store.read(stream, { limit: 1 })) return metadata.env_id ?? ''
  return undefined
}

/** The hash of a build whose zip is not in the file, because it was deleted: it is that of no zip. */
const NO_ZIP = '0'.repeat(64)

/**
 * The backend of content is that of this installation. A build without its zip gets no hash, by which it could be
 * another tenant's. Functions in a blob are checked like those in facts. `content`: the keys of builds that were in the file.
 * Rejects with `conflict` if one was removed since, because a repetition does not replace a stored fact without a hash.
 */
export const adapted = async (
  { blobs, payloads }: Pick<CommandDeps, 'blobs' | 'payloads'>,
  fact: ImportedFact,
  content: ReadonlySet<string>,
): Promise<ImportedFact> => {
  const { event } = fact
  if (event.type === 'FileStored') return { ...fact, event: { ...event, storage_backend: blobs.backend } }
  if (event.type !== 'BuildUploaded' && event.type !== 'BuildDeployed') return fact
  const { functions_ref: ref } = event
  const headOf = async (key: string) => {
    const found = await blobs.head(key)
    if (!found && content.has(key)) throw removedMeanwhile(key)
    return found
  }
  const hasZip = (await headOf(buildKey(event))) !== null
  if (hasZip && ref) {
    const stored = await headOf(ref.key)
    if (!stored) throw new AppError('bad_request', `functions_ref: The blob ${ref.key} is not in the file`)
    if (stored.size > MAX_FUNCTIONS_BYTES)
      throw new AppError('bad_request', `functions_ref: expected at most ${MAX_FUNCTIONS_BYTES} bytes`)
    checkList(await loaded(payloads, ref))
  }
  const hash = hasZip ? event.hash : NO_ZIP
  if (event.type === 'BuildDeployed') return { ...fact, event: { ...event, hash } }
  const storage_path = buildKey({ ...event, hash }) // as an export of this environment must have it
  return { ...fact, event: { ...event, hash, storage_path, storage_backend: blobs.backend } }
}

/** Bytes of a list of functions that is parsed. */
const MAX_FUNCTIONS_BYTES = 16 << 20

/** A list with other bytes than its fact says, or that is none, is a mistake of the file. */
const loaded = async (payloads: Pick<Payloads, 'loadList'>, ref: PayloadRef): Promise<unknown[]> => {
  try {
    return await payloads.loadList(ref)
  } catch (error) {
    const isOfFile = isAppError(error, 'internal_server_error') || error instanceof SyntaxError
    if (!isOfFile) throw error
    throw new AppError('bad_request', `functions_ref: ${messageOf(error)}`, { cause: error })
  }
}

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

/** Appends consecutive facts of one stream. T2: facts that are stored already change nothing. */
export const appendFacts = async (
  { store }: Pick<CommandDeps, 'store'>,
  batch: readonly ImportedFact[],
): Promise<void> => {
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
      return appendFacts({ store }, batch.slice(stored.length))
    throw new AppError(
      'conflict',
      `The environment exists already: ${stream} has other facts than the file`,
      { cause: error },
    )
  }
}
