import { AppError, isAppError, stackOf } from '../errors.ts'
import type { Logger } from '../logger.ts'

/**
 * Returns the error that user code may see. Any other error is a defect or comes from the system: its message may contain
 * paths of the node, so only the log has it. The errors that the stop of a run causes are not logged.
 */
export const withoutInside = (
  error: unknown,
  { run_id, signal, logger }: { run_id: string; signal: AbortSignal; logger: Logger },
): AppError => {
  if (isAppError(error)) return error
  if (!signal.aborted) logger.error('The service failed to serve a run', { run_id, error: stackOf(error) })
  const message = 'The service failed; its log has the reason under the id of the run'
  return new AppError('internal_server_error', message, { cause: error })
}
