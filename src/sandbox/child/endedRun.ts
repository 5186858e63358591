import { getCallSites } from 'node:util'
import { activeRuns } from '../../sdk/activeRun.ts'
import { networkError } from './networkTunnel.ts'
import { Run } from './run.ts'
import { isLoading } from './timers.ts'

/** Pools of Node open a connection for a waiting request in the async context of the connection that ended. */
const POOLS = ['node:internal/deps/undici/undici', 'node:_http_agent']

/** The deepest stack that V8 describes. */
const FRAMES = 200

/**
 * The error of a network call in the async context of a run that has ended; undefined in any other context. What a
 * module starts while it loads belongs to the process.
 */
export const refusalAfterEnd = (): Error | undefined => {
  const run = activeRuns.getStore()
  if (!(run instanceof Run) || !run.ended || isLoading()) return undefined
  return networkError({
    code: 'ERR_EGRESS_REFUSED',
    message: 'The run has ended: await all network calls before the function returns',
  })
}

/** The same for a connection. A pool of Node may serve another run, and checks each request itself. */
export const connectionRefusalAfterEnd = (): Error | undefined => {
  const refusal = refusalAfterEnd()
  const isPooled = () => getCallSites(FRAMES).some(({ scriptName }) => POOLS.includes(scriptName))
  return refusal && !isPooled() ? refusal : undefined
}
