import type { Reservation } from '../../src/content/fileQuota.ts'
import { AppError } from '../../src/errors.ts'

/** The room of a plan without limits. */
export const anyRoom = (): Reservation => ({ cover: () => Promise.resolve(), release() {} })

/** The room of a plan that is full. */
export const noRoom = (): Reservation => ({
  cover: () => Promise.reject(new AppError('quota_exceeded', 'full')),
  release() {},
})
