import { AppError } from '../errors.ts'

/** An invocation that no command understands: exit code 2. */
export class WrongUsage extends AppError {
  constructor(message: string) {
    super('bad_request', message)
  }
}
