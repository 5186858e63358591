/** The module `svc/client`: the API of one environment, for browsers and Node. It imports nothing but itself. */
export { createClient } from './createClient.ts'
export { RunError, ServiceError } from './errors.ts'
export type * from './api.ts'
export type * from './client.ts'
export type * from './streamEvents.ts'
