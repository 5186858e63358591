import { writeSync } from 'node:fs'

/** Notes in the trace that something is durable now, as the reply to a request does. */
export const acknowledge = (name: string): void => void writeSync(1, `X-Request-Id: ${name}\n`)
