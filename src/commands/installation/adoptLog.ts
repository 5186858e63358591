import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../logger.ts'
import type { ReadModels } from '../../ports/readModels.ts'
import type { CommandDeps } from '../deps.ts'
import { assignBlobs, blobsLogId } from './blobsLogId.ts'
import type { AcceptedLoss } from './checkLog.ts'
import { readInstallation } from './readInstallation.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'blobs'> & {
  readonly readModels: ReadModels
  readonly logger: Logger
}

/**
 * Records an accepted loss in the log, which gets a new id, then marks everything derived from the log with its id. Read
 * models from before the loss are removed, so that they are built again. Every step can be repeated.
 */
export const adoptLog = async (deps: Deps, accepted: AcceptedLoss | null): Promise<void> => {
  const { store, aggregates, readModels, blobs, logger } = deps
  if (accepted) {
    const { loss, acceptance } = accepted
    const log_id = newId()
    await aggregates.installation.handle(
      streamOf.installation,
      { type: 'AcceptLogLoss', log_id, loss, acceptance, now: clock.iso() },
      { correlation_id: log_id, ...bySystem('setup') },
    )
    logger.warn('An operator has accepted that events are lost; the read models are built again', { loss })
    await store.acceptLoss()
  }
  const log_id = (await readInstallation({ aggregates }))?.log_ids.at(-1)
  if (log_id === undefined) throw new AppError('internal_server_error', 'Expected a log with an id, got none')
  const source = await readModels.source()
  if (source.log_id === null && !accepted) await readModels.assign(log_id)
  else if (source.log_id !== log_id) {
    if (!accepted)
      logger.warn('The read models are from before an accepted loss, and are built again', { log_id })
    await readModels.restart(log_id)
  }
  if ((await blobsLogId(blobs)) !== log_id) await assignBlobs(blobs, log_id)
}
