import { createHash } from 'node:crypto'
import { filesOf } from '../../content/contentKey.ts'
import { payloadsOf } from '../../content/payloads.ts'
import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { isId } from '../../ids.ts'
import type { TransferKey } from '../../secrets/transferKey.ts'
import type { CommandDeps } from '../deps.ts'
import type { Header } from './importHeader.ts'
import type { TransferRecord } from './records.ts'

/** A key that exists is never replaced, and one that was erased here does not come back. */
export const putKey = async (
  { wrappedKeys, aggregates }: Pick<CommandDeps, 'wrappedKeys' | 'aggregates'>,
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

/** A node of a former version also exports the lists whose keys contain their hash. */
const BUILD = /^builds\/([0-9a-f-]{36})\/[0-9a-f-]{36}-([0-9a-f]{64})(\.zip|(?:-[0-9a-f]{64})?\.json)$/

/** A blob that exists is never replaced. Resolves with its key and size. A zip must have the hash in its key: unpacked builds are shared by their hash. */
export const putBlob = async (
  { blobs, views }: Pick<CommandDeps, 'blobs' | 'views'>,
  { record: { line, bytes }, header: { env_id } }: { record: TransferRecord; header: Header },
): Promise<{ readonly key: string; readonly size: number }> => {
  const key = String(line['blob'])
  const [, project_id, hash, ending] = BUILD.exec(key) ?? []
  const isOfEnv = key.startsWith(payloadsOf(env_id)) || key.startsWith(filesOf(env_id))
  const project = project_id === undefined ? null : await views.projects.get(project_id)
  if (!isOfEnv && (project_id === undefined || (project && project.env_id !== env_id)))
    throw new AppError('bad_request', `blob: expected a blob of the environment, got ${key.slice(0, 120)}`)
  const stored = await blobs.head(key)
  if (stored) return { key, size: stored.size } // T2
  const digest = createHash('sha256')
  let size = 0
  const measured = async function* () {
    for await (const chunk of bytes) {
      digest.update(chunk)
      size += chunk.length
      yield chunk
    }
    if (ending === '.zip' && digest.digest('hex') !== hash)
      throw new AppError('bad_request', `blob: the content of ${key} does not have the hash in its key`)
  }
  await blobs.put(key, measured())
  return { key, size }
}

/** Content is an orphan until its fact is stored, like that of a crash, which the service removes. A repetition stores it again. */
export const removedMeanwhile = (key: string): AppError =>
  new AppError('conflict', `The blob ${key} was removed during the import; repeat the import`)

const FOLDER = /^[^/]+\/[^/]+\//

/** Rejects with `conflict` if content was removed before it belonged to anything. */
export const checkStored = async (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  keys: ReadonlySet<string>,
): Promise<void> => {
  const missing = new Set(keys)
  const folders = new Set([...keys].map((key) => FOLDER.exec(key)?.[0] ?? key))
  for (const folder of folders) for await (const { key } of blobs.list(folder)) missing.delete(key)
  for (const key of missing) throw removedMeanwhile(key)
}
