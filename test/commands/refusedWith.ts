import * as assert from 'uvu/assert'
import { type AppError, type ErrorCode, isAppError } from '../../src/errors.ts'

/** Expects the command to be refused with this code; returns the error. */
export const refusedWith = async (code: ErrorCode, command: () => Promise<unknown>): Promise<AppError> => {
  try {
    await command()
  } catch (error) {
    if (isAppError(error, code)) return error
    throw error
  }
  return assert.unreachable(`Expected ${code}`) as never
}
