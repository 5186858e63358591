/** The module `svc/test`: tests of functions, one at a time or with the whole service. */
import type { ServiceOptions, TestService } from './serviceTypes.ts'

export { testRun, type TestRun } from './testRun.ts'

/**
 * Starts the real service in this process, on a free port and with a data directory of its own, and deploys a project. Its
 * clock stands still until `advance`.
 */
export const startService = async (options: ServiceOptions): Promise<TestService> =>
  (await import('./startService.ts')).startService(options) // tests of single functions do not load the service

export type { SentEvent, ServiceOptions, TestService } from './serviceTypes.ts'
export type { Time } from './expected.ts'
export type {
  Called,
  Emitted,
  InputOf,
  Logged,
  NextRetry,
  ResultOf,
  Sent,
  Stubs,
  TestRunOptions,
} from './types.ts'
