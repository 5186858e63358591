import { isDeepStrictEqual } from 'node:util'
import { AppError } from '../errors.ts'
import { envIdOf } from '../events/event.ts'
import type { EventOf } from '../events/index.ts'
import type { Part, Upload } from '../events/upload.ts'
import { MAX_PARTS, MIN_PART_BYTES } from '../ports/blobs.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

export type UploadState =
  | { readonly status: 'absent' | 'aborted' }
  | {
      /** `joined`: its content becomes a file, so it can no longer be cancelled. */
      readonly status: 'pending' | 'joined' | 'completed'
      readonly env_id: string
      readonly upload: Upload
      /** By number, in the order of arrival. */
      readonly parts: Map<number, Part>
      /** Every part that ever arrived, in order, without repeats of the newest with its number; empty once the parts are joined. */
      readonly arrivals: Arrival[]
    }

/** A part, and the revision of its fact. */
export interface Arrival {
  readonly revision: number
  readonly part: Part
}

export type UploadCommand =
  | { readonly type: 'BeginUpload'; readonly upload: Upload }
  | { readonly type: 'AddPart'; readonly part: Part; readonly now: string }
  /** `parts`: the number of parts that were joined, from the first one. `parts_revision`: no later part is among them. */
  | { readonly type: 'JoinParts'; readonly parts: number; readonly parts_revision: number }
  | { readonly type: 'CompleteUpload' }
  /** `seen`: the status that the caller read. An upload whose completion has begun since then does not end. */
  | {
      readonly type: 'AbortUpload'
      readonly reason: 'asked' | 'expired'
      readonly seen: 'pending' | 'joined'
    }

type UploadEvent = EventOf<
  'UploadBegun' | 'PartUploaded' | 'UploadJoined' | 'UploadCompleted' | 'UploadAborted'
>

/** Parts of one upload, with those that were replaced. */
const MAX_ARRIVALS = 3 * MAX_PARTS

const gone = () => new AppError('not_found', 'No such upload: it is complete, cancelled or expired')

/** The rules of an upload in parts. Parts arrive in any order, also repeatedly, until the upload ends or expires. */
export const upload: Decider<UploadState, UploadCommand, UploadEvent> = {
  initial: () => ({ status: 'absent' }),

  decide(command, state) {
    if (command.type === 'BeginUpload')
      return state.status === 'absent' ? [{ type: 'UploadBegun', ...command.upload }] : []
    if (!('upload' in state)) throw gone()
    const { status } = state
    const { upload_id, expires_at } = state.upload
    switch (command.type) {
      case 'AddPart':
        if (status !== 'pending' || command.now >= expires_at) throw gone()
        return [
          { type: 'PartUploaded', upload_id, ...command.part, ...replacedBy(command.part, state.parts) },
        ]
      case 'JoinParts': // the append decides between a completion and a cancellation
        if (status !== 'pending') return []
        return [
          { type: 'UploadJoined', upload_id, parts: command.parts, parts_revision: command.parts_revision },
        ]
      case 'CompleteUpload':
        return status === 'completed' ? [] : [{ type: 'UploadCompleted', upload_id }] // a repeat is a no-op
      case 'AbortUpload':
        if (status !== command.seen) throw gone()
        return [{ type: 'UploadAborted', upload_id, reason: command.reason }]
      default:
        return command satisfies never
    }
  },

  sizeOf: (state) => ('parts' in state ? state.parts.size + state.arrivals.length : 0),

  evolve(state, fact: Folded<UploadEvent>) {
    const { event } = fact
    switch (event.type) {
      case 'UploadBegun': {
        const { type: _, ...upload } = event
        return { status: 'pending', env_id: envIdOf(fact), upload, parts: new Map(), arrivals: [] }
      }
      case 'PartUploaded': {
        const { type: _, upload_id: __, replaced_size: ___, ...part } = event
        if (state.status !== 'pending') return state
        const repeats = isDeepStrictEqual(state.parts.get(part.part_number), part)
        state.parts.set(part.part_number, part)
        if (!repeats) state.arrivals.push({ revision: fact.revision, part })
        return state
      }
      case 'UploadJoined':
        return 'upload' in state
          ? { ...state, status: 'joined', parts: joinedOf(state, event), arrivals: [] }
          : state
      case 'UploadCompleted':
        return 'upload' in state ? { ...state, status: 'completed' } : state
      case 'UploadAborted':
        return 'upload' in state ? { status: 'aborted' } : state
      default:
        return foreign(event)
    }
  },
}

/** Throws `quota_exceeded` when so many parts of an upload were replaced that no other may arrive: each remains in its state. */
export const demandRoomForPart = ({
  upload: { upload_id },
  arrivals,
}: {
  readonly upload: Pick<Upload, 'upload_id'>
  readonly arrivals: readonly unknown[]
}): void => {
  if (arrivals.length < MAX_ARRIVALS) return
  throw new AppError(
    'quota_exceeded',
    `Upload ${upload_id}: expected at most ${MAX_ARRIVALS} parts, with those that were replaced; cancel it and begin a new one`,
  )
}

/** A part that arrived while the others were joined is not in the content. */
const joinedOf = (
  { parts, arrivals }: { readonly parts: ReadonlyMap<number, Part>; readonly arrivals: readonly Arrival[] },
  { parts: joined = Infinity, parts_revision }: EventOf<'UploadJoined'>,
): Map<number, Part> => {
  const before = parts_revision === undefined ? parts : partsUpTo(arrivals, parts_revision)
  return new Map([...before].filter(([part_number]) => part_number <= joined))
}

/** Returns the parts as they were at a revision, by number. */
export const partsUpTo = (arrivals: readonly Arrival[], revision: number): Map<number, Part> =>
  new Map(
    arrivals.filter((arrival) => arrival.revision <= revision).map(({ part }) => [part.part_number, part]),
  )

/** Returns the revisions after which the parts had this size in total, without a gap. Equal bytes change nothing. */
export const revisionsOfSize = (arrivals: readonly Arrival[], size: number): number[] => {
  const parts = new Map<number, Part>()
  const found: number[] = []
  let [total, last] = [0, 0]
  for (const { revision, part } of arrivals) {
    const replaced = parts.get(part.part_number)
    parts.set(part.part_number, part)
    if (replaced?.etag === part.etag) continue
    total += part.size - (replaced?.size ?? 0)
    last = Math.max(last, part.part_number)
    if (total === size && parts.size === last) found.push(revision)
  }
  return found
}

const replacedBy = (part: Part, parts: ReadonlyMap<number, Part>): { replaced_size?: number } => {
  const replaced = parts.get(part.part_number)
  return replaced ? { replaced_size: replaced.size } : {}
}

/** Returns the parts in the order of the file. Throws `bad_request` that names the wrong part (SPEC.md, Part rules). */
export const assembled = ({
  upload: { expected_size },
  parts,
}: {
  readonly upload: Pick<Upload, 'expected_size'>
  readonly parts: ReadonlyMap<number, Part>
}): { parts: Part[]; size: number } => {
  const refused = (message: string) => new AppError('bad_request', message)
  if (parts.size === 0) throw refused('parts: expected at least one, got none')
  if (parts.size > MAX_PARTS) throw refused(`parts: expected at most ${MAX_PARTS}, got ${parts.size}`)
  const ordered = [...parts.values()].sort((a, b) => a.part_number - b.part_number)
  let size = 0
  for (const [index, part] of ordered.entries()) {
    if (part.part_number !== index + 1)
      throw refused(`parts: expected consecutive numbers from 1, got no part ${index + 1}`)
    if (part.size < MIN_PART_BYTES && index < ordered.length - 1)
      throw refused(
        `part ${part.part_number}: expected at least ${MIN_PART_BYTES} bytes, because it is not the last; got ${part.size}`,
      )
    size += part.size
  }
  if (expected_size !== undefined && size !== expected_size)
    throw refused(
      `parts: expected ${expected_size} bytes in total (the expected_size of the upload), got ${size}`,
    )
  return { parts: ordered, size }
}
