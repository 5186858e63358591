import { AppError } from '../errors.ts'
import type { RunError } from './run.ts'

/** A child run failed. The function that waits for it receives the error of the child. */
export class FailedRun extends AppError {
  readonly run_id: string
  readonly failure: RunError

  constructor(run_id: string, failure: RunError) {
    super('internal_server_error', failure.message)
    this.run_id = run_id
    this.failure = failure
  }
}
