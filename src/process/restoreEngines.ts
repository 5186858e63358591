import type { OnProgress } from '../backup/makeBackup.ts'
import type { Manifest } from '../backup/manifest.ts'
import { openBackup, type ReadBackup } from '../backup/readBackup.ts'
import { openRestoredRows } from '../backup/restoredRows.ts'
import { checkUnused, restoreFacts, unhandledIn } from '../commands/installation/restoreFacts.ts'
import { markRestoring, restoringInto, unmarkRestoring } from '../commands/installation/restoringBlob.ts'
import { AppError } from '../errors.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { type Config, isEmbeddedUrl } from './config.ts'
import { openBlobs, openReadModels, openRowReader, openStore, openStreamGaps } from './engines.ts'
import { checkBackupKey } from './restoreDataDir.ts'

interface Given {
  /** The backup of an installation with embedded engines. */
  readonly dir: string
  /** The settings of a node of the cluster. */
  readonly config: Config
  readonly onProgress: OnProgress
}

export interface RestoredEngines {
  readonly manifest: Manifest
  /** The number of facts of the backup, without those that had expired. */
  readonly events: number
}

/**
 * Restores a backup into an empty external event store and empty external blobs.
 * E1: the whole log of the backup, the master key and the engines are checked before anything is written.
 * E2: a marker is the first blob to be stored and the last to be removed. No node starts beside it, and a repetition
 * continues.
 */
export const restoreEngines = async ({ dir, config, onProgress }: Given): Promise<RestoredEngines> => {
  if ([config.eventStore, config.blobs].some(isEmbeddedUrl))
    throw new AppError(
      'bad_request',
      'SVC_EVENT_STORE, SVC_BLOBS: expected two external engines or two embedded ones, got one of each',
    )
  const backup = openBackup(dir)
  const { manifest } = backup
  const { log_id, position } = manifest
  if (config.masterKey) checkBackupKey(manifest, 'SVC_MASTER_KEY', [config.masterKey]) // external engines require it
  const facts = await openFacts(backup)
  const unhandled = await unhandledIn(facts()) // E1
  const [store, blobs] = await Promise.all([openStore(config), openBlobs(config)])
  try {
    const name = `${log_id} ${position}`
    await checkEmpty({ store, blobs }, name)
    await checkReadModels(config)
    await markRestoring(blobs, name) // E2
    await putBlobs(backup, { blobs, onProgress })
    const onRestored = (done: number) => onProgress({ what: 'events', done, total: position })
    const events = await restoreFacts(facts(), { store, unhandled, backend: blobs.backend, onRestored })
    await unmarkRestoring(blobs)
    return { manifest, events }
  } finally {
    await Promise.all([store.close(), blobs.close()])
  }
}

const openFacts = async (backup: ReadBackup) => {
  const factsIn = await openRowReader()
  const rows = await openRestoredRows(backup, await openStreamGaps())
  return async function* () {
    for await (const { first, text } of rows()) yield* factsIn(first, text)
  }
}

/** Engines into which the same backup was being restored are not empty. */
const checkEmpty = async (
  { store, blobs }: { readonly store: EventStore; readonly blobs: Blobs },
  name: string,
): Promise<void> => {
  const begun = await restoringInto(blobs)
  if (begun === name) return
  if (begun !== null)
    throw new AppError(
      'bad_request',
      'SVC_BLOBS: the restore of another backup did not complete; repeat that one, or use empty engines',
    )
  await checkUnused(store)
  for await (const { key } of blobs.list(''))
    throw new AppError(
      'bad_request',
      `SVC_BLOBS: it contains data (${key}); restore into an empty bucket or another folder of it`,
    )
}

/** The first start would refuse the read models of another log. */
const checkReadModels = async (config: Config): Promise<void> => {
  if (isEmbeddedUrl(config.readModels)) return
  const readModels = await openReadModels(config)
  try {
    if ((await readModels.source()).log_id !== null)
      throw new AppError(
        'bad_request',
        'SVC_READ_MODELS: it contains the read models of another log; name an empty database',
      )
  } finally {
    await readModels.close()
  }
}

const putBlobs = async (
  backup: ReadBackup,
  { blobs, onProgress }: { readonly blobs: Blobs; readonly onProgress: OnProgress },
): Promise<void> => {
  const all = await backup.blobs()
  let done = 0
  for (const blob of all) {
    await blobs.put(blob.key, backup.content(blob))
    onProgress({ what: 'blobs', done: ++done, total: all.length })
  }
}
