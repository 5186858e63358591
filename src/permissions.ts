import type { Permissions } from './events/org.ts'

/** What a credential may do, compiled from its permission map so that a check is a few set look-ups. */
export interface PermissionSet {
  /** Whether `action` is granted on `type:path`; without a path, on any path of the type. */
  allows(type: string, action: string, path?: string): boolean
}

/** Compiles a permission map (SPEC.md, Permission map). `*` as an action grants every action of the type. */
export const compilePermissions = (map: Permissions): PermissionSet => {
  const granted = new Set<string>()
  for (const [resource, actions] of Object.entries(map))
    for (const action of actions) granted.add(`${resource} ${action}`)
  const has = (resource: string, action: string) =>
    granted.has(`${resource} ${action}`) || granted.has(`${resource} *`)
  const everything = granted.has('*:* *')
  return {
    allows: (type, action, path) =>
      everything ||
      has(`${type}:*`, action) ||
      (path !== undefined && has(`${type}:${path}`, action)) ||
      has('*:*', action),
  }
}
