import { timeOf } from '../commands/audit/moment.ts'

/** The `order` of a document: its time, and its position in the log, whose digits depend on the engine. */
const ORDER = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\/[0-9a-f]{1,64}$/

/** Returns the bound of a list by `order`. Throws `bad_request` unless `before` is a time or where a page ended. */
export const beforeOf = (before: string | undefined): string | undefined =>
  before === undefined || ORDER.test(before) ? before : timeOf('before', before)
