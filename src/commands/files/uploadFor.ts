import type { Immutable } from '../../domain/immutable.ts'
import type { UploadState } from '../../domain/upload.ts'
import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { earlierNow } from '../../loops/twoClocks.ts'
import type { Upload } from '../../events/upload.ts'
import type { CommandDeps } from '../deps.ts'

/** An upload in parts that was not cancelled. */
export type KnownUpload = Extract<Immutable<UploadState>, { upload: Upload }>

export interface UploadRef {
  readonly upload_id: string
  /** Only an upload that this run began; any upload of the environment when omitted. */
  readonly by_run_id?: string
}

export const uploadState = (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  upload_id: string,
): Promise<Immutable<UploadState>> =>
  aggregates.uploads.read(streamOf.upload(upload_id), (state) =>
    'parts' in state ? { ...state, parts: new Map(state.parts), arrivals: [...state.arrivals] } : state,
  )

/** Reads an upload of the environment. Rejects with `not_found` for others, and after it expired or was cancelled (I7). */
export const uploadFor = async (
  deps: Pick<CommandDeps, 'aggregates' | 'store'>,
  env_id: string,
  { upload_id, by_run_id }: UploadRef,
): Promise<KnownUpload> => {
  const state = await uploadState(deps, upload_id)
  if (!('upload' in state) || state.env_id !== env_id) throw noUpload(upload_id)
  // The completion of joined parts began in time, and can be repeated until the sweep ends it.
  if (state.status === 'pending' && Date.parse(state.upload.expires_at) <= earlierNow(deps.store))
    throw noUpload(upload_id)
  if (by_run_id !== undefined && state.upload.by_run_id !== by_run_id) throw noUpload(upload_id)
  return state
}

/** Reads an upload that accepts parts. Rejects with `not_found` for others, also for one that is complete. */
export const pendingUpload = async (
  deps: Pick<CommandDeps, 'aggregates' | 'store'>,
  env_id: string,
  ref: UploadRef,
): Promise<KnownUpload> => {
  const known = await uploadFor(deps, env_id, ref)
  if (known.status !== 'pending') throw noUpload(ref.upload_id)
  return known
}

export const noUpload = (upload_id: string): AppError => new AppError('not_found', `No upload ${upload_id}`)
