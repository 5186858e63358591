/** The module `svc/test`: tests of functions, one at a time or with the whole service. */
import { createRequire } from 'node:module'
import { needNode } from './nodeVersion.ts'
import type { ServiceOptions, TestService } from './serviceTypes.ts'
import type { TestRun } from './testRun.ts'
import type { TestRunOptions } from './types.ts'

needNode('svc/test', 22, 15)

// A static import would be refused by an old Node before the line above.
const { TestRun: Runner } = createRequire(import.meta.url)(
  import.meta.url.endsWith('.ts') ? './testRun.ts' : './testRun.js',
) as typeof import('./testRun.ts')

/**
 * Runs functions in this process as the service runs them: the same checks of metadata, data and results, and the same
 * errors. What a function sends is recorded, and nothing is started by it.
 */
export const testRun = (options: TestRunOptions = {}): TestRun => new Runner(options)
export type { TestRun } from './testRun.ts'

/**
 * Starts the real service in this process, on a free port and with a data directory of its own, and deploys a project. Its
 * clock stands still until `advance`.
 */
export const startService = async (options: ServiceOptions): Promise<TestService> => {
  needNode('startService', 26, 0)
  return (await import('./startService.ts')).startService(options) // tests of single functions do not load the service
}

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
