import { AppError, isAppError } from '../../errors.ts'

/** No room, no room for this user, and a file above the limit of its process. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Whether the system refused to write because there is no room. */
export const isFullDisk = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && !isAppError(error) && FULL.has(error.code)

/** The refusal of a caller while the disk of this node is full. The error of the system would name paths of the machine. */
export const fullDisk = (cause?: unknown): AppError =>
  new AppError('unavailable', 'The disk of the service is full', { cause })
