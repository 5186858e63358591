import { AppError } from '../errors.ts'
import type { Permissions } from '../events/org.ts'

/** The permissions of a credential, compiled from its permission map so that a check is a few set look-ups. */
export interface PermissionSet {
  /** Whether `action` is granted on `type:path`; without a path, on any path of the type. */
  allows(type: string, action: string, path?: string): boolean
  /** Returns an entry of the map that exceeds this set; undefined when the set covers the whole map. */
  beyond(map: Permissions): string | undefined
}

/** The resource types and their actions (SPEC.md, Permission map, which lacks `file` and `domain`). */
export const actionsOf: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    mcp: ['execute'],
    webhook: ['execute'],
    stream: ['read'],
    event: ['create', 'read'],
    run: ['read'],
    project: ['create', 'read', 'update', 'delete'],
    build: ['create', 'read', 'execute'],
    context: ['create', 'read', 'update', 'delete'],
    key: ['create', 'read', 'update', 'delete'],
    session: ['create', 'read', 'delete'],
    env: ['read'],
    file: ['create', 'read', 'update', 'delete'],
    domain: ['create', 'read', 'delete'],
  }),
)

const ACTIONS = ['create', 'read', 'update', 'delete', 'execute', '*']

/** The resource types that a service key may have (SPEC.md, Authentication, rule 4). */
export const SERVICE_KEY_TYPES = ['mcp', 'webhook', 'stream', 'event', 'run']

const RESOURCE = /^(\*(?=:\*$)|[A-Za-z0-9-]+):(.+)$/s

/** Every action on everything. */
export const FULL_ACCESS: Permissions = { '*:*': ['*'] }

/** Compiles a permission map (SPEC.md, Permission map). `*` as an action grants every action of the type. */
export const compilePermissions = (map: Permissions): PermissionSet => {
  // Nested, because concatenating a key for one look-up takes longer than three look-ups.
  const granted = new Map<string, Map<string, Set<string>>>()
  for (const [resource, actions] of Object.entries(map)) {
    const [type, path] = partsOf(resource)
    const paths = granted.get(type) ?? new Map<string, Set<string>>()
    granted.set(type, paths.set(path, new Set(actions)))
  }
  const has = (paths: Map<string, Set<string>> | undefined, path: string, action: string): boolean => {
    const actions = paths?.get(path)
    return actions !== undefined && (actions.has(action) || actions.has('*'))
  }
  const any = granted.get('*')
  const everything = has(any, '*', '*')
  const allows = (type: string, action: string, path?: string): boolean => {
    if (everything) return true
    const paths = granted.get(type)
    return (
      has(paths, '*', action) || (path !== undefined && has(paths, path, action)) || has(any, '*', action)
    )
  }
  return {
    allows,
    beyond: (asked) => {
      if (everything) return undefined
      return Object.entries(asked).find(([resource, actions]) => {
        const [type, path] = partsOf(resource)
        return actions.some((action) => !expanded(type, action).every((one) => allows(type, one, path)))
      })?.[0]
    },
  }
}

/** Whether maps, each of which must allow it, allow an action on some path of a type. */
export const allowsSomewhere = (maps: readonly Permissions[], type: string, action: string): boolean =>
  maps.every((map) =>
    Object.entries(map).some(([resource, actions]) => {
      const [of] = partsOf(resource)
      return (of === type || of === '*') && (actions.includes(action) || actions.includes('*'))
    }),
  )

/** Returns the intersection of the permissions of a credential and of the API key that issued it. */
export const bothAllow = (child: PermissionSet, parent: PermissionSet): PermissionSet => ({
  allows: (type, action, path) => child.allows(type, action, path) && parent.allows(type, action, path),
  beyond: (map) => child.beyond(map) ?? parent.beyond(map),
})

/** Returns a map that grants what each of two maps grants. */
export const commonOf = (one: Permissions, other: Permissions): Permissions => {
  const matching = matcherOf(other)
  const common = new Map<string, Set<string>>()
  for (const [left, leftActions] of Object.entries(one)) {
    const [type, path] = partsOf(left)
    for (const right of matching(type, path)) {
      const actions = commonActions(new Set(leftActions), right.actions)
      if (actions.length === 0) continue
      const resource = `${narrower(type, right.type)}:${narrower(path, right.path)}`
      const known = common.get(resource) ?? new Set()
      for (const action of actions) known.add(action)
      common.set(resource, known)
    }
  }
  return Object.fromEntries([...common].map(([resource, actions]) => [resource, [...actions]]))
}

const commonActions = (one: ReadonlySet<string>, other: ReadonlySet<string>): string[] =>
  [...one].flatMap((action) => [...other].flatMap((another) => narrower(action, another) ?? []))

interface Entry {
  readonly at: number
  readonly type: string
  readonly path: string
  readonly actions: ReadonlySet<string>
}

/**
 * Returns a look-up of the entries of a map that have something in common with a resource, in the order of the map. A
 * comparison with each entry would take a second for two maps of 1000 entries.
 */
const matcherOf = (map: Permissions): ((type: string, path: string) => readonly Entry[]) => {
  const entries = Object.entries(map).map(([resource, actions], at): Entry => {
    const [type, path] = partsOf(resource)
    return { at, type, path, actions: new Set(actions) }
  })
  const byType = Map.groupBy(entries, ({ type }) => type)
  const byPath = Map.groupBy(entries, ({ path }) => path)
  const byResource = new Map(entries.map((entry) => [`${entry.type}:${entry.path}`, entry]))
  return (type, path) => {
    if (type === '*' && path === '*') return entries
    const found =
      path === '*'
        ? [type, '*'].flatMap((one) => byType.get(one) ?? [])
        : type === '*'
          ? [path, '*'].flatMap((one) => byPath.get(one) ?? [])
          : [`${type}:${path}`, `${type}:*`, `*:${path}`, '*:*'].flatMap((one) => byResource.get(one) ?? [])
    return found.sort((a, b) => a.at - b.at)
  }
}

/** The part of a permission that two parts have in common, where `*` is everything; undefined if there is none. */
const narrower = (one: string | undefined, other: string | undefined): string | undefined => {
  if (one === '*') return other
  return other === '*' || one === other ? one : undefined
}

/** Names a missing permission and what to do, in the same words everywhere. */
export const lackText = (type: string, action: string, path = '*'): string =>
  `The credential lacks the permission ${type}:${path} ${action}; use one that has it, or ask the operator to grant it`

/** The error of a request whose credential lacks a permission. */
export const lacking = (type: string, action: string, path?: string): AppError =>
  new AppError('forbidden', lackText(type, action, path))

/** Throws `forbidden` unless one of the actions is granted on one of the paths, the names of one resource. */
export const demand = (
  permissions: PermissionSet,
  {
    type,
    actions,
    paths,
  }: { type: string; actions: readonly [string, ...string[]]; paths: readonly string[] },
): void => {
  for (const action of actions) if (permissions.allows(type, action)) return
  for (const path of paths) for (const action of actions) if (permissions.allows(type, action, path)) return
  throw lacking(type, actions[0], paths[0])
}

/** Expands `*` to the actions that the type has now. For `*:*` and unknown types it is kept, so only `*` covers it. */
const expanded = (type: string, action: string): readonly string[] =>
  (action === '*' ? actionsOf.get(type) : undefined) ?? [action]

const partsOf = (resource: string): [type: string, path: string] => {
  const colon = resource.indexOf(':')
  return [resource.slice(0, colon), resource.slice(colon + 1)]
}

/** Throws `bad_request` with the message of the validation table (SPEC.md, Permission map), the invalid entry and what is valid. */
export const checkPermissions = (map: Permissions): void => {
  for (const [resource, actions] of Object.entries(map)) {
    const [, type, path] = RESOURCE.exec(resource) ?? []
    if (type === undefined || path === undefined)
      throw refusal('Invalid resource', [resource], 'type:path, such as "run:*"')
    const valid = validActions(type)
    if (actions.length === 0) throw refusal('Empty action list', [resource], orOf(valid ?? ACTIONS))
    const unknown = actions.find((action) => !ACTIONS.includes(action))
    if (unknown !== undefined) throw refusal('Invalid action', [resource, unknown], orOf(ACTIONS))
    const unfit = actions.find((action) => !valid?.includes(action))
    if (unfit === undefined) continue
    const expected = valid ? orOf(valid) : `the type ${orOf([...actionsOf.keys(), '*'])}`
    throw refusal('Action not valid for resource', [resource, unfit], expected)
  }
}

/** Undefined for an unknown type. `*:*` accepts only `*`: another action would have no meaning for types without it. */
const validActions = (type: string): readonly string[] | undefined => {
  if (type === '*') return ['*']
  const actions = actionsOf.get(type)
  return actions && [...actions, '*']
}

const orOf = (names: readonly string[]): string => {
  const [last = '', ...before] = names.toReversed()
  return before.length === 0 ? last : `${before.toReversed().join(', ')} or ${last}`
}

/** Throws `bad_request` for permissions that a service key cannot have. */
export const checkServiceKeyPermissions = (map: Permissions): void => {
  checkPermissions(map)
  for (const resource of Object.keys(map)) {
    if (SERVICE_KEY_TYPES.includes(partsOf(resource)[0])) continue
    throw new AppError(
      'bad_request',
      `Invalid resource: ${quoted(resource)}: a service key can only have ${SERVICE_KEY_TYPES.join(', ')}`,
    )
  }
}

const refusal = (text: string, entry: readonly string[], expected: string): AppError =>
  new AppError('bad_request', `${text}: ${entry.map(quoted).join(' ')}: expected ${expected}`)

const quoted = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
