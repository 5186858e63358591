import { demand } from '../../access/permissions.ts'
import { isAppError } from '../../errors.ts'
import type { Ask, CredentialRoute, Needs } from '../route.ts'

/** The part of a request that permissions depend on. */
type Asking = Pick<Ask, 'params' | 'credential' | 'deps' | 'body'>

/** Whether the permission covers every path. In this common case the resource is not looked up. */
const isGranted = ({ type, action, or }: Needs, { credential: { permissions } }: Asking): boolean =>
  permissions.allows(type, action) || (or !== undefined && permissions.allows(type, or))

/** Rejects with `forbidden` unless the credential has every permission that the route needs. */
export const demandNeeds = async ({ needs }: Pick<CredentialRoute, 'needs'>, ask: Asking): Promise<void> => {
  for (const one of needs) if (!isGranted(one, ask)) await demandOf(one, ask)
}

/** Whether the credential would still be admitted to this request. */
export const isLetIn = async (route: CredentialRoute, ask: Asking): Promise<boolean> => {
  try {
    await demandNeeds(route, ask)
    return true
  } catch {
    return false
  }
}

const demandOf = async ({ type, action, or, path, settled }: Needs, ask: Asking): Promise<void> => {
  const check = async () => {
    const paths = (await path?.(ask.params, ask)) ?? []
    demand(ask.credential.permissions, { type, actions: or === undefined ? [action] : [action, or], paths })
  }
  if (!settled) return check()
  try {
    await check()
  } catch (error) {
    if (!isAppError(error, 'forbidden')) throw error
    await settled(ask)
    await check()
  }
}
