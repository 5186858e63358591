import { AppError } from '../../errors.ts'

/** The refusal of a caller while the disk of this node is full. The error of the system would name paths of the machine. */
export const fullDisk = (cause?: unknown): AppError =>
  new AppError('unavailable', 'The disk of the service is full', { cause })
