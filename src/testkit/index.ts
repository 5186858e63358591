/** The module `svc/test`: tests of functions, one at a time or with the whole service. */
export { testRun, type TestRun } from './testRun.ts'
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
