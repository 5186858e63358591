import { AppError } from '../errors.ts'

/**
 * A blob that a fact names is missing or has other bytes, although nothing removed it. That is an outage, and not the absence of
 * what the caller asked for: it was stored, so it can be restored.
 */
export class LostBlob extends AppError {
  constructor(reason: string, cause?: unknown) {
    super('unavailable', `${reason}; restore it from a backup`, { cause })
  }
}
