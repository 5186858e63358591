import { getCallSites } from 'node:util'
import { activeRuns } from '../../sdk/activeRun.ts'
import { networkError } from './networkTunnel.ts'
import { refused } from './refusals.ts'
import { Run } from './run.ts'
import { isLoading } from './timers.ts'

/** Pools of Node open a connection for a waiting request in the async context of the connection that ended. */
const POOLS = ['node:internal/deps/undici/undici', 'node:_http_agent']

/** The deepest stack that V8 describes. */
const FRAMES = 200

/** The run of the async context, ended or not. What a module starts while it loads belongs to the process. */
export const runOfContext = (): Run | undefined => {
  const run = activeRuns.getStore()
  return run instanceof Run && !isLoading() ? run : undefined
}

export const refusal = (): Error =>
  refused(
    networkError({
      code: 'ERR_EGRESS_REFUSED',
      message: 'The run has ended: await all network calls before the function returns',
    }),
  )

/** The error of a network call in the async context of a run that has ended; undefined in any other context. */
export const refusalAfterEnd = (): Error | undefined => (runOfContext()?.ended ? refusal() : undefined)

/** The same for a connection. A pool of Node may serve another run, and checks each request itself. */
export const connectionRefusalAfterEnd = (): Error | undefined => {
  const error = refusalAfterEnd()
  const isPooled = () => getCallSites(FRAMES).some(({ scriptName }) => POOLS.includes(scriptName))
  return error && !isPooled() ? error : undefined
}
