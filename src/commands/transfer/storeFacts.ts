import { AppError, isAppError } from '../../errors.ts'
import type { NewEvent } from '../../events/event.ts'
import type { EventType } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
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

type AppendDeps = Pick<CommandDeps, 'store' | 'aggregates'>

/** Appends consecutive facts of one stream. T2: facts that are stored already change nothing. */
export const appendFacts = async (deps: AppendDeps, batch: readonly ImportedFact[]): Promise<void> => {
  const { store } = deps
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
      return appendFacts(deps, batch.slice(stored.length))
    if (await isShared(deps, first)) return appendMissing(deps, batch)
    throw new AppError(
      'conflict',
      `The environment exists already: ${stream} has other facts than the file`,
      { cause: error },
    )
  }
}

/** Facts of streams that a name identifies, of which this installation may have had one. */
const OF_NAMES: ReadonlySet<EventType> = new Set([
  'NameReserved',
  'NameReleased',
  'WebhookReserved',
  'FileStored',
  'FileDeleted',
])

/**
 * Whether facts of a stream follow those that this installation has added: its data keys and days, and names that are free,
 * because the environment was empty before the import or the name has been imported since.
 */
const isShared = async (
  { aggregates, store }: AppendDeps,
  { stream, event, metadata: { env_id = '' } }: ImportedFact,
): Promise<boolean> => {
  if (stream === streamOf.calls(env_id) || stream === streamOf.dataKeys(env_id)) return true
  if (!OF_NAMES.has(event.type)) return false
  const { status, isEmpty } = await aggregates.envs.read(streamOf.env(env_id), ({ status, importing }) => ({
    status,
    isEmpty: importing?.empty,
  }))
  if (isEmpty) return true
  const stored = await Array.fromAsync(store.read(stream))
  return status === 'active' && stored.at(-1)?.metadata.imported_at !== undefined
}

/**
 * Appends the facts of a batch that are not stored to the end of their stream. The last numbers of a day apply. A day that has
 * expired here stays expired. Keys that were created here are not destroyed.
 */
const appendMissing = async (deps: AppendDeps, batch: readonly ImportedFact[]): Promise<void> => {
  const { store } = deps
  const [first] = batch
  if (!first) return
  const ids = new Set<string>()
  const keys: string[] = []
  let [last, expired] = [-1, '']
  for await (const { id, revision, event, metadata } of store.read(first.stream)) {
    ids.add(id)
    last = revision
    if (event.type === 'CallsExpired' && event.up_to === undefined && event.before > expired)
      expired = event.before
    if (event.type === 'DataKeyCreated' && metadata.imported_at !== undefined) keys.push(event.key_id)
  }
  const events: NewEvent[] = []
  for (const { id, event, metadata } of batch) {
    if (ids.has(id) || (event.type === 'CallsExpired' && event.before <= expired)) continue
    if (event.type === 'DataKeyCreated') keys.push(event.key_id)
    const isDestruction = event.type === 'DataKeysDestroyed'
    events.push({ id, event: isDestruction ? { key_ids: [...keys], ...event } : event, metadata })
  }
  if (events.length === 0) return
  try {
    await store.append(first.stream, events, last < 0 ? 'none' : last)
  } catch (error) {
    if (!isAppError(error, 'wrong_revision')) throw error
    return appendMissing(deps, batch) // this installation was faster
  }
}
