import type { Static } from 'typebox'
import type { FunctionSpec } from '../../events/project.ts'
import type { BuildFunction } from '../schemas.ts'

/** Returns a function of a build with the triggers that start it while the build is deployed. */
export const presentFunction = ({
  ns,
  var: name,
  on_event,
  schedule,
  webhook,
  mcp,
  retry,
  once,
  timeout,
}: FunctionSpec): Static<typeof BuildFunction> => ({
  fn: `${ns}/${name}`,
  ns,
  var: name,
  ...(on_event !== undefined && { on_event }),
  ...(schedule && { schedule }),
  ...(webhook && {
    webhook: { service: webhook.service, path: webhook.path, method: webhook.method, auth: webhook.auth },
  }),
  ...(mcp && { mcp: { service: mcp.service, description: mcp.description } }),
  ...(retry && { retry }),
  ...(once && { once }),
  ...(timeout !== undefined && { timeout }),
})
